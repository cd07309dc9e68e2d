// Line graphs and heat maps of a host trace, as rows of the timeline.
(function () {
  "use strict";

  async function fetchCharts() {}
  function drawChart() {}
  function nameChart() {}
  const chartValues = () => [];

  window.tilescope = Object.assign(window.tilescope || {}, { fetchCharts, drawChart, nameChart, chartValues });
})();

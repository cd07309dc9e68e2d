"""Variables of equal names together, as a table of what is live shows them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pva.lazy import pandas as pd

_KEYS = ["name", "category"]


def joined_names(
    frame: pd.DataFrame, steps: Sequence[str], opened: Collection[str] = ()
) -> pd.DataFrame:
    """Join variables of equal names and categories, the largest change first, then the largest.

    `frame` has a row for each variable, as `live_at_steps`; `steps` are its columns of bytes. A row
    of the result is of `count` variables, without a `variable` when these are several. Below those
    named in `opened` are the rows of their variables, which are `inside`.
    """
    sizes = frame.groupby(_KEYS, sort=False)["variable"].transform("size")
    duplicates = frame[sizes > 1]
    sums = [name for name in (*steps, "share", "change") if name in frame]
    groups = duplicates.groupby(_KEYS, sort=False)
    totals = groups[sums].sum().reset_index().assign(variable=None)
    totals["count"] = groups.size().to_numpy()
    alone = frame[sizes == 1].assign(count=1).astype({"variable": object})
    result = pd.concat([alone, totals], ignore_index=True) if len(totals) else alone
    order = np.lexsort((-result[list(steps)].max(axis=1), -result["change"].abs()))
    result = result.iloc[order].assign(inside=False)
    inside = duplicates[duplicates["name"].isin(list(opened))].assign(count=1, inside=True)
    if not len(inside):
        return result.reset_index(drop=True)
    places = pd.Series(np.arange(len(result)), index=pd.MultiIndex.from_frame(result[_KEYS]))
    around = places.loc[list(inside[_KEYS].itertuples(index=False, name=None))].to_numpy()
    below = np.argsort(np.concatenate((places.to_numpy(), around)), kind="stable")
    return pd.concat([result, inside], ignore_index=True).iloc[below].reset_index(drop=True)

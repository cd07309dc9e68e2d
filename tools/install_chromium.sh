#!/bin/sh
# Install Debian's chromium for the browser tests, when it is absent and this user may.
# Otherwise the tests say why they are skipped (with CI=true: why they fail).
command -v chromium >/dev/null 2>&1 && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "chromium is absent and cannot be installed by this user: the browser tests will be skipped"
    exit 0
fi
echo "installing chromium for the browser tests"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null \
    || echo "apt-get could not install chromium: the browser tests will be skipped"

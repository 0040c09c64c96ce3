#!/usr/bin/env bash
# Brings Debian's Prometheus Alertmanager into build/alertmanager, for tests/manhunt/test_doors.py, once. Unpacked and not
# installed: installing it would start it as a service of this machine. Only its templates go where it looks for them.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$root/build/alertmanager
templates=usr/share/prometheus/alertmanager
sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo)
place_templates() {
  [ -e "/$templates/default.tmpl" ] && return
  "${sudo[@]}" mkdir -p "/$templates"
  "${sudo[@]}" cp "$folder/$templates"/*.tmpl "/$templates/"
}
[ -x "$folder/usr/bin/prometheus-alertmanager" ] && { place_templates; exit; }
echo "Fetching Alertmanager"
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
if ! apt-get -qq download prometheus-alertmanager >log 2>&1; then
  "${sudo[@]}" apt-get -qq update
  apt-get -qq download prometheus-alertmanager >log 2>&1 || { cat log >&2; exit 1; }
fi
dpkg -x prometheus-alertmanager_*.deb .
rm -- *.deb
place_templates

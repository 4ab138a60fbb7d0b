#!/bin/sh
# Prints the path of the real nvidia-smi; where PATH has none, fetches the package of it into the user's cache.
#
# Only the program is taken out of the package: no driver, no library, no diversion of the system's own. It runs over the
# stub libnvidia-ml.so.1 of a simulated host, so no GPU is needed. On Debian apt's lists must hold the component
# non-free: as root, `--enable` adds it to Debian's sources, once, and reads the lists anew.
set -eu

PACKAGES="nvidia-smi nvidia-utils-535" # Debian's, Ubuntu's
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kiln/nvidia-smi

fail() {
  echo "nvidia_smi.sh: $1" >&2
  echo "  way out: on Debian, as root: tools/nvidia_smi.sh --enable; elsewhere put any nvidia-smi on PATH" >&2
  exit 2
}

enable() {
  [ "$(id -u)" = 0 ] || fail "--enable changes apt's sources, which takes root"
  for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
    [ -f "$file" ] || continue
    sed -i -E '/^(Components:|deb .*debian).*\bmain\b/{/ non-free( |$)/!s/$/ non-free/}' "$file"
  done
  apt-get update -q >&2
}

[ "${1:-}" = --enable ] && enable

if found=$(command -v nvidia-smi); then
  echo "$found"
  exit 0
fi
if [ ! -x "$cache/nvidia-smi" ]; then
  command -v apt-get > /dev/null || fail "no nvidia-smi on PATH, and no apt-get to fetch one with"
  for package in $PACKAGES; do
    LC_ALL=C apt-cache policy "$package" | grep -q 'Candidate: [0-9]' && break
    package=
  done
  [ -n "$package" ] || fail "no nvidia-smi on PATH, and apt's lists hold none of: $PACKAGES"
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && apt-get -o APT::Sandbox::User="$(id -un)" download -q "$package" >&2) || fail "apt-get could not download $package"
  dpkg-deb -x "$work"/*.deb "$work/content"
  program=$(find "$work/content" -type f -name nvidia-smi -perm -u+x | head -n 1)
  [ -n "$program" ] || fail "package $package holds no program nvidia-smi"
  mv "$program" "$cache/nvidia-smi"
fi
echo "$cache/nvidia-smi"

#!/usr/bin/env bash
# The Debian packages that the system tests use: installed where they are missing (root), or named (anybody else).
set -euo pipefail

missing=()
need() { # COMMAND PACKAGE
  command -v "$1" > /dev/null || [ -x "/usr/sbin/$1" ] || missing+=("$2")
}
need sshd openssh-server
need ssh openssh-client
need sudo sudo
need useradd passwd
need ps procps
need cc gcc

if [ "$(id -u)" != 0 ]; then
  echo "packages: the tests of users and sudo need root; \`make unit\` needs nothing" >&2
fi
[ "${#missing[@]}" -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  echo "packages: the tests use what is not here; as root: apt-get install ${missing[*]}" >&2
  exit 2
fi
echo "packages: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends "${missing[@]}"

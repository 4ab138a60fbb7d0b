#!/bin/sh
if [ "$$(id -u)" != 0 ]; then
    echo "dmesg: read kernel buffer failed: Operation not permitted" >&2
    exit 1
fi
answer dmesg

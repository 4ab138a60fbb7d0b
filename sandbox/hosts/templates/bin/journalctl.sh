#!/bin/sh
if [ "$$(id -u)" != 0 ]; then
    echo "No journal files were opened due to insufficient permissions." >&2
    exit 1
fi
case $$* in
"-k -b"*) sed 's/^\[ *[0-9.]*\]/Aug 21 08:50:00 host kernel:/' "$$answers/dmesg" ;;
*) refuse "$$@" ;;
esac

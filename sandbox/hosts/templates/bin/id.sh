#!/bin/sh
if [ "$$*" = -u ] && [ -n "$$KILN_STUB_UID" ]; then
    echo "$$KILN_STUB_UID"
    exit 0
fi
exec $ID "$$@"

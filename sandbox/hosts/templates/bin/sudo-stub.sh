#!/bin/sh
while :; do
    case $$1 in
    -n | --non-interactive | -H | -E | -S) shift ;;
    -u) shift 2 ;;
    --) shift && break ;;
    -v | -l) exit 0 ;;
    -*) refuse "$$@" ;;
    *) break ;;
    esac
done
[ $$# -gt 0 ] || refuse
# A fresh environment and a fixed PATH, as env_reset and secure_path make them.
exec env -i PATH=$BIN KILN_STUB_UID=0 USER=root LOGNAME=root SUDO_USER="$$USER" HOME=$HOME "$$@"

#!/bin/sh
[ "$$1" = status ] || refuse "$$@"
shift
form=text
while [ $$# -gt 0 ]; do
    case $$1 in
    --wait) while [ ! -f $ROOT/run/cloud-init/result.json ]; do sleep 0.5; done ;;
    --long) form=long ;;
    --format=json) form=json ;;
    --format) shift && form=$$1 ;;
    *) refuse "$$@" ;;
    esac
    shift
done
answer "cloud-init/$$form"

#!/bin/sh
verb=$$1 unit= wanted=
shift
while [ $$# -gt 0 ]; do
    case $$1 in
    -p) shift && wanted=$$1 ;;
    --property=*) wanted=$${1#*=} ;;
    --no-pager) ;;
    -*) refuse "$$verb" "$$@" ;;
    *) unit=$${1%.service}.service ;;
    esac
    shift
done
show() {
    if [ -f "$$answers/systemctl/$$unit" ]; then
        cat "$$answers/systemctl/$$unit"
    else
        printf 'Id=%s\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\n' "$$unit"
    fi
}
case $$verb in
show)
    show | while IFS= read -r line; do
        case ,$${wanted:-$${line%%=*}}, in *,$${line%%=*},*) printf '%s\n' "$$line" ;; esac
    done
    ;;
is-active)
    state=$$(show | sed -n 's/^ActiveState=//p')
    echo "$$state"
    [ "$$state" = active ] || exit 3
    ;;
is-system-running) echo running ;;
*) refuse "$$verb" "$$@" ;;
esac

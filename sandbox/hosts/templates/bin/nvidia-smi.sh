#!/bin/sh
if [ -f "$$answers/nvidia-smi/.hangs" ]; then
    trap '' HUP INT QUIT TERM
    exec sleep 600
fi
query() {
    columns= header=yes units=yes names=
    for argument; do
        case $$argument in
        --query-gpu=*) columns=$${argument#*=} ;;
        --format=*)
            case ,$${argument#*=}, in *,csv,*) ;; *) refuse "$$@" ;; esac
            case ,$${argument#*=}, in *,noheader,*) header=no ;; esac
            case ,$${argument#*=}, in *,nounits,*) units=no ;; esac
            ;;
        *) refuse "$$@" ;;
        esac
    done
    [ ! -f "$$answers/nvidia-smi/query-gpu/.broken" ] || answer nvidia-smi/query-gpu/.broken
    old_ifs=$$IFS IFS=,
    set --
    for column in $$columns; do
        column=$${column# }
        file=$$answers/nvidia-smi/query-gpu/$$column
        if [ ! -f "$$file.header" ]; then
            echo "Field \"$$column\" is not a valid field to query."
            exit 2
        fi
        read -r name <"$$file.header"
        names="$$names, $$name"
        set -- "$$@" "$$file"
    done
    IFS=$$old_ifs
    [ "$$header" = no ] || echo "$${names#, }"
    if [ "$$units" = no ]; then
        paste -d , "$$@" | sed -e 's/ \(MiB\|W\|MHz\|%\),/,/g' -e 's/ \(MiB\|W\|MHz\|%\)$$//' -e 's/,/, /g'
    else
        paste -d , "$$@" | sed -e 's/,/, /g'
    fi
    exit 0
}
case $$* in
"-q -x" | "-x -q") answer nvidia-smi/q-x ;;
"topo -m") answer nvidia-smi/topo-m ;;
"topo -p2p r") answer nvidia-smi/topo-p2p-r ;;
"nvlink -s" | "nvlink --status") answer nvidia-smi/nvlink-s ;;
"nvlink -e" | "nvlink --errorcounters") answer nvidia-smi/nvlink-e ;;
"-L" | "--list-gpus") answer nvidia-smi/L ;;
"--version") answer nvidia-smi/version ;;
*--query-gpu=*) query "$$@" ;;
*) refuse "$$@" ;;
esac

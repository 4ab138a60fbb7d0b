# A simulated host's tool: prints what was prepared below ANSWERS.
answers=$ANSWERS
answer() {
    [ ! -f "$$answers/$$1.stderr" ] || cat "$$answers/$$1.stderr" >&2
    [ ! -f "$$answers/$$1" ] || cat "$$answers/$$1"
    status=0
    [ ! -f "$$answers/$$1.rc" ] || read -r status <"$$answers/$$1.rc"
    exit "$$status"
}
refuse() {
    echo "$${0##*/} (simulated): no answer prepared for: $$*" >&2
    exit 64
}

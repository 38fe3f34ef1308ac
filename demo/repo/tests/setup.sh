# Read by tests/run before the first test.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp tests/titles "$work/titles"

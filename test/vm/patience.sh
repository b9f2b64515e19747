# Sets how much longer than on a usual machine tests wait: by how long ten starts of Node.js take, there half a second.
began=$(date +%s%N)
for _ in 1 2 3 4 5 6 7 8 9 10; do node_modules/node/bin/node -e 0; done
PODWRIGHT_TEST_PATIENCE=$((($(date +%s%N) - began) / 500000000 + 1))
export PODWRIGHT_TEST_PATIENCE
echo "tests wait $PODWRIGHT_TEST_PATIENCE times as long as usual"

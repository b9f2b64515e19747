/**
 * How many times as long as usual tests wait before they fail: 1, or more on a slow machine
 * (`PODWRIGHT_TEST_PATIENCE`, which the test runner measures in the virtual machine).
 */
export const patience = Math.max(1, Number(process.env["PODWRIGHT_TEST_PATIENCE"] ?? 1) || 1);

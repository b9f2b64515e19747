import assert from "node:assert/strict";
import { test } from "node:test";
import { expose } from "../metrics/exposition.ts";
import { certificateFamilies } from "./metrics.ts";

test("a node's certificates have upstream's metrics, a missing one an infinite expiry", () => {
  const client = { ttlSeconds: 3600, renewErrors: 2, ages: [] };
  const serving = { ttlSeconds: Number.POSITIVE_INFINITY, renewErrors: 0, ages: [30, 60, 61, 1e9] };
  const lines = expose(certificateFamilies(client, serving)).split("\n");
  const values = lines.filter((line) => !line.startsWith("#") && !/le="(?!60"|3600"|\+Inf")/u.test(line));
  assert.deepEqual(values, [
    "kubelet_certificate_manager_client_ttl_seconds 3600",
    "kubelet_certificate_manager_client_expiration_renew_errors 2",
    "kubelet_certificate_manager_server_ttl_seconds +Inf",
    "kubelet_server_expiration_renew_errors 0",
    'kubelet_certificate_manager_server_rotation_seconds_bucket{le="60"} 2',
    'kubelet_certificate_manager_server_rotation_seconds_bucket{le="3600"} 3',
    'kubelet_certificate_manager_server_rotation_seconds_bucket{le="+Inf"} 4',
    "kubelet_certificate_manager_server_rotation_seconds_sum 1000000151",
    "kubelet_certificate_manager_server_rotation_seconds_count 4",
    "",
  ]);
  assert.ok(lines.includes("# TYPE kubelet_certificate_manager_server_rotation_seconds histogram"));
});

test("certificates from files have no metrics", () => {
  assert.deepEqual(certificateFamilies(undefined, undefined), []);
});

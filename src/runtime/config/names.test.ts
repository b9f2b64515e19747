import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../../test/support/pods.ts";
import type { Pod } from "../../api/pod.ts";
import { kernelHostname, podHostname } from "./names.ts";

const domain = "cluster.local";
const cases: [string, Partial<Pod["spec"]>, string, { hostname: string; domain: string }][] = [
  ["its own name", {}, "web", { hostname: "web", domain: "" }],
  ["hostname", { hostname: "h" }, "web", { hostname: "h", domain: "" }],
  ["subdomain", { subdomain: "s" }, "web", { hostname: "web", domain: "s.ns.svc.cluster.local" }],
  [
    "hostnameOverride",
    { hostnameOverride: "a.b", hostname: "h", subdomain: "s" },
    "web",
    { hostname: "a.b", domain: "" },
  ],
  ["a name of 63 characters", {}, "x".repeat(63), { hostname: "x".repeat(63), domain: "" }],
  ["the first 63 characters of a longer name", {}, "x".repeat(70), { hostname: "x".repeat(63), domain: "" }],
  ["no dash or dot at the end of a cut name", {}, `${"x".repeat(60)}-.-y`, { hostname: "x".repeat(60), domain: "" }],
];

for (const [name, spec, podName, expected] of cases) {
  test(`the host name of a pod: ${name}`, () => {
    assert.deepEqual(podHostname(podWith(spec, { name: podName }), domain), expected);
  });
}

for (const [field, spec] of [
  ["Hostname", { hostname: "a.b" }],
  ["Hostname", { hostname: "x".repeat(64) }],
  ["Subdomain", { subdomain: "-a" }],
  ["HostnameOverride", { hostnameOverride: "a..b" }],
  ["HostnameOverride", { hostnameOverride: "" }],
] as const) {
  test(`${JSON.stringify(spec)} is refused`, () => {
    assert.throws(() => podHostname(podWith(spec), domain), new RegExp(`pod ${field} ".*" is not a valid DNS`));
  });
}

test("the kernel's host name is the full one only on request, and has at most 64 characters", () => {
  const names = { hostname: "h", domain: "d" };
  assert.equal(kernelHostname(podWith({}), names), "h");
  assert.equal(kernelHostname(podWith({ setHostnameAsFQDN: true }), names), "h.d");
  assert.equal(kernelHostname(podWith({ setHostnameAsFQDN: true }), { hostname: "h", domain: "" }), "h");
  const long = { hostname: "h", domain: "d".repeat(62) };
  assert.equal(kernelHostname(podWith({ setHostnameAsFQDN: true }), long).length, 64);
  assert.throws(() => kernelHostname(podWith({ setHostnameAsFQDN: true }), { ...long, hostname: "hh" }), /too long/);
});

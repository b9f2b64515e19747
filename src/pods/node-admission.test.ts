import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import { admitByProfile, admitBySecurity, type NodeAdmission } from "./node-admission.ts";
import { sysctlAllowlist } from "./sysctl-allowlist.ts";

const able: NodeAdmission = { sysctls: sysctlAllowlist("6.8.0", []), appArmor: true, supplementalGroupsPolicy: true };
const unable: NodeAdmission = { ...able, appArmor: false, supplementalGroupsPolicy: false };
const containers = [{ name: "c" }];
const refused = (pod: Pod, node: NodeAdmission): string | undefined => {
  const rejection = admitBySecurity(pod, node, {}) ?? admitByProfile(pod, node);
  return rejection && `${rejection.reason}: ${rejection.message}`;
};

test("a pod without requirements is admitted everywhere", () => {
  assert.equal(refused(podWith({ containers }), unable), undefined);
  const unconfined = { appArmorProfile: { type: "Unconfined" }, supplementalGroupsPolicy: "Merge" as const };
  assert.equal(refused(podWith({ containers, securityContext: unconfined }), unable), undefined);
});

test("an unsafe sysctl is forbidden by name", () => {
  const sysctls = [
    { name: "net.ipv4.tcp_syncookies", value: "1" },
    { name: "net/core/somaxconn", value: "1" },
  ];
  assert.match(
    refused(podWith({ containers, securityContext: { sysctls } }), able) ?? "",
    /^SysctlForbidden: forbidden sysctl: "net\.core\.somaxconn" not allowlisted/u,
  );
});

test("a sysctl of a namespace shared with the host is forbidden, whatever the configuration", () => {
  const sysctls = [{ name: "net.ipv4.tcp_syncookies", value: "1" }];
  assert.equal(
    refused(podWith({ containers, hostNetwork: true, securityContext: { sysctls } }), able),
    'SysctlForbidden: forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled',
  );
});

test("supplementalGroupsPolicy Strict needs a runtime that supports it", () => {
  const pod = podWith({ containers, securityContext: { supplementalGroupsPolicy: "Strict" } });
  assert.equal(refused(pod, able), undefined);
  assert.match(refused(pod, unable) ?? "", /^SupplementalGroupsPolicyNotSupported: .*its container runtime lacks it/u);
});

test("an AppArmor profile, by field or annotation, needs a host with AppArmor and a name", () => {
  const profile = { appArmorProfile: { type: "RuntimeDefault" } };
  const annotations = { "container.apparmor.security.beta.kubernetes.io/c": "localhost/mine" };
  for (const pod of [
    podWith({ containers, securityContext: profile }),
    podWith({ containers: [{ name: "c", securityContext: profile }] }),
    podWith({ containers, initContainers: [{ name: "i", securityContext: profile }] }),
    podWith({ containers }, { annotations }),
  ]) {
    assert.equal(refused(pod, able), undefined);
    assert.match(refused(pod, unable) ?? "", /^AppArmor: .*Cannot enforce AppArmor: AppArmor is not enabled/u);
  }
  const nameless = { ...annotations, "container.apparmor.security.beta.kubernetes.io/c": "localhost/ " };
  assert.match(
    refused(podWith({ containers }, { annotations: nameless }), able) ?? "",
    /invalid empty AppArmor profile/u,
  );
});

test("a pod for another operating system is rejected, by field and by label", () => {
  assert.equal(refused(podWith({ containers, os: { name: "linux" } }), able), undefined);
  assert.match(refused(podWith({ containers, os: { name: "windows" } }), able) ?? "", /^PodOSNotSupported: Failed to/u);
  const labelled = (os: string): Pod => podWith({ containers }, { labels: { "kubernetes.io/os": os } });
  assert.equal(refused(labelled("linux"), able), undefined);
  assert.match(refused(labelled("windows"), able) ?? "", /^PodOSSelectorNodeLabelDoesNotMatch: /u);
  assert.equal(admitBySecurity(labelled("windows"), able, undefined), undefined);
});

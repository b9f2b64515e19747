import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import { type PolicyContexts, policyContexts, policyName, type SELinuxOptions, volumeLabel } from "./selinux-label.ts";

/** As on Fedora. */
const policy = policyContexts(`
# what containers get
process = "system_u:system_r:container_t:s0"
; content of images
content = "system_u:object_r:virt_var_lib_t:s0"
file = "system_u:object_r:container_file_t:s0"
ro_file="system_u:object_r:container_ro_file_t:s0"
`);
const volumeMounts = [{ name: "v", mountPath: "/v" }];

interface Options {
  readonly pod?: SELinuxOptions;
  readonly containers?: readonly (SELinuxOptions | undefined)[];
  readonly init?: SELinuxOptions;
  readonly ephemeral?: SELinuxOptions;
  readonly policy?: PolicyContexts;
  readonly seLinuxChangePolicy?: string;
}

function container(name: string, seLinuxOptions?: SELinuxOptions) {
  return { name, volumeMounts, ...(seLinuxOptions && { securityContext: { seLinuxOptions } }) };
}

function podOf({ containers = [undefined], init, ephemeral, seLinuxChangePolicy, ...options }: Options): Pod {
  return podWith({
    containers: containers.map((each, index) => container(`c${index}`, each)),
    ...(init && { initContainers: [container("init", init)] }),
    ...(ephemeral && { ephemeralContainers: [container("debug", ephemeral)] }),
    securityContext: {
      ...(options.pod && { seLinuxOptions: options.pod }),
      ...(seLinuxChangePolicy !== undefined && { seLinuxChangePolicy }),
    },
  });
}

function label(options: Options): string | undefined {
  return volumeLabel(podOf(options), "v", options.policy ?? policy);
}

const level = "s0:c10,c20";
const usual = `system_u:object_r:container_file_t:${level}`;

test("files have the policy's role and type, and the user and the level of the container", () => {
  assert.equal(label({ pod: { level } }), usual);
  assert.equal(label({ pod: { type: "spc_t", role: "r", level } }), usual);
  assert.equal(label({ pod: { user: "u", level } }), `u:object_r:container_file_t:${level}`);
});

test("a container's options replace those of its pod, and containers without any do not count", () => {
  assert.equal(label({ pod: { user: "u", level: "s0:c1,c2" }, containers: [{ level }] }), usual);
  assert.equal(label({ containers: [undefined, { level }] }), usual);
  assert.equal(label({}), undefined);
});

test("a pod without options, or one whose level the runtime chooses, has no label before its containers", () => {
  assert.equal(label({ pod: { type: "t" } }), undefined);
  assert.equal(label({ containers: [{ type: "t" }, { level }] }), undefined);
  const withoutLevels = policyContexts("process = system_u:system_r:container_t\nfile = system_u:object_r:files_t");
  assert.equal(label({ pod: { type: "t" }, policy: withoutLevels }), "system_u:object_r:files_t");
});

test("a policy without contexts for containers gives no label", () => {
  assert.equal(label({ pod: { level }, policy: policyContexts("") }), undefined);
  assert.equal(label({ pod: { level }, policy: policyContexts("file=a:b:c") }), "a:b:c");
});

test("containers that mount the volume with different labels are an error, also if each file is to be labelled", () => {
  const different = { containers: [{ level: "s0:c3" }, { level: "s0:c1" }] };
  const words =
    "multiple SELinux labels found: system_u:object_r:container_file_t:s0:c1,system_u:object_r:container_file_t:s0:c3";
  for (const seLinuxChangePolicy of ["Recursive", "MountOption"]) {
    assert.throws(() => label({ ...different, seLinuxChangePolicy }), { message: words, outcome: "podMismatch" });
  }
  assert.throws(() => label({ init: { level: "s0:c3" }, containers: [{ level }] }), /multiple SELinux labels/);
  assert.throws(() => label({ containers: [{}, { level }] }), { message: `multiple SELinux labels found: ,${usual}` });
  const other = podOf(different);
  assert.equal(volumeLabel(other, "another", policy), undefined);
});

test("ephemeral containers only count if no other mounts the volume", () => {
  assert.equal(label({ containers: [{ level }], ephemeral: { level: "s0:c1" } }), usual);
  assert.equal(label({ containers: [], ephemeral: { level } }), usual);
});

test("a pod with the policy Recursive has its files labelled one by one", () => {
  assert.equal(label({ pod: { level }, seLinuxChangePolicy: "Recursive" }), undefined);
  assert.equal(label({ pod: { level }, seLinuxChangePolicy: "MountOption" }), usual);
});

test("an invalid context of the policy is an error in upstream's words", () => {
  const invalid = policyContexts("process = nonsense\nfile = a:b:c:s0");
  assert.throws(() => label({ pod: { level }, policy: invalid }), {
    message:
      `failed to construct SELinux label from context "&SELinuxOptions{User:,Role:,Type:,Level:${level},}": ` +
      "invalid Label",
    outcome: "containerError",
  });
});

test("the name of the policy is in the configuration, between comments", () => {
  assert.equal(policyName('# SELINUXTYPE=mls\nSELINUX=enforcing\n\nSELINUXTYPE="targeted"\n'), "targeted");
  assert.equal(policyName("SELINUX=enforcing\nnonsense\n"), "");
});

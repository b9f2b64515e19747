import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../../test/support/pods.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { SecurityProfile_ProfileType as ProfileType } from "../../ports/gen/runtime/v1/api_pb.js";
import { containerSecurityContext, type ImageUser, type SecurityContextSettings } from "./security-context.ts";

type Own = NonNullable<Container["securityContext"]>;
type Shared = NonNullable<Pod["spec"]["securityContext"]>;
const root: ImageUser = { uid: 0n };

function context(own: Own, shared: Shared = {}, imageUser = root, changed: Partial<SecurityContextSettings> = {}) {
  const container = { name: "c", securityContext: own };
  const pod = podWith({ containers: [container], securityContext: shared });
  return containerSecurityContext(pod, container, imageUser, {
    seccompProfileRoot: "/var/lib/kubelet/seccomp",
    seccompDefault: false,
    ...changed,
  });
}

test("the user is the container's, else the pod's, else the image's", () => {
  assert.deepEqual(context({ runAsUser: 1 }, { runAsUser: 2 }).runAsUser, { value: 1n });
  assert.deepEqual(context({}, { runAsUser: 2 }).runAsUser, { value: 2n });
  assert.deepEqual(context({}, {}, { uid: 3n }).runAsUser, { value: 3n });
  const named = context({}, {}, { username: "web" });
  assert.deepEqual([named.runAsUser, named.runAsUsername], [undefined, "web"]);
  assert.equal(context({ runAsUser: 1 }, {}, { username: "web" }).runAsUsername, undefined);
});

const rootless: [string, Own, Shared, ImageUser, RegExp | undefined][] = [
  ["a number other than 0", {}, { runAsNonRoot: true, runAsUser: 1 }, root, undefined],
  ["an image's number other than 0", { runAsNonRoot: true }, {}, { uid: 5n }, undefined],
  ["root where the container allows it", { runAsNonRoot: false }, { runAsNonRoot: true }, root, undefined],
  [
    "user 0",
    { runAsNonRoot: true, runAsUser: 0 },
    {},
    { uid: 5n },
    /runAsUser breaks non-root policy \(pod: "p_ns\(u\)", container: c\)/,
  ],
  ["an image that runs as root", {}, { runAsNonRoot: true }, root, /image will run as root/],
  [
    "an image with a named user",
    { runAsNonRoot: true },
    {},
    { username: "web" },
    /non-numeric user \(web\), cannot verify/,
  ],
  ["an image with an impossible user", { runAsNonRoot: true }, {}, { uid: 2n ** 31n }, /invalid user id/],
];

for (const [name, own, shared, imageUser, message] of rootless) {
  test(`runAsNonRoot ${message === undefined ? "allows" : "refuses"} ${name}`, () => {
    if (message === undefined) assert.ok(context(own, shared, imageUser));
    else assert.throws(() => context(own, shared, imageUser), message);
  });
}

test("seccomp is the container's, else the pod's, else the node's default", () => {
  const { RuntimeDefault, Unconfined, Localhost } = ProfileType;
  assert.equal(context({}).seccomp?.profileType, Unconfined);
  assert.equal(context({}, {}, root, { seccompDefault: true }).seccomp?.profileType, RuntimeDefault);
  const unconfined = { seccompProfile: { type: "Unconfined" } };
  const runtimeDefault = { seccompProfile: { type: "RuntimeDefault" } };
  assert.equal(context(unconfined, runtimeDefault).seccomp?.profileType, Unconfined);
  assert.equal(context({}, runtimeDefault).seccomp?.profileType, RuntimeDefault);
  const localhost = { seccompProfile: { type: "Localhost", localhostProfile: "a/b.json" } };
  assert.deepEqual(context(localhost).seccomp, {
    profileType: Localhost,
    localhostRef: "/var/lib/kubelet/seccomp/a/b.json",
  });
  assert.throws(() => context({ seccompProfile: { type: "Localhost" } }), /localhostProfile must be set/);
  assert.throws(
    () => context({ seccompProfile: { type: "Localhost", localhostProfile: "../x" } }),
    /leaves the profile directory/,
  );
  assert.throws(() => context({ seccompProfile: { type: "Odd" } }), /unknown seccomp profile type: "Odd"/);
});

test("AppArmor is the container's field, else the annotation, else the pod's field", () => {
  const profile = (type: string, localhostProfile?: string) => ({
    appArmorProfile: { type, ...(localhostProfile !== undefined && { localhostProfile }) },
  });
  assert.equal(context({}).apparmor, undefined);
  assert.equal(context(profile("Unconfined"), profile("RuntimeDefault")).apparmor?.profileType, ProfileType.Unconfined);
  assert.equal(context({}, profile("Localhost", "x")).apparmor?.localhostRef, "x");
  assert.throws(() => context(profile("Localhost")), /missing localhost apparmor profile/);
  const container = { name: "c" };
  const annotations = { "container.apparmor.security.beta.kubernetes.io/c": "localhost/old" };
  const pod = podWith({ containers: [container], securityContext: profile("RuntimeDefault") }, { annotations });
  const settings = { seccompProfileRoot: "", seccompDefault: false };
  assert.equal(containerSecurityContext(pod, container, root, settings).apparmor?.localhostRef, "old");
});

test("an unmasked /proc hides and protects nothing", () => {
  const unmasked = context({ procMount: "Unmasked" });
  assert.deepEqual([unmasked.maskedPaths, unmasked.readonlyPaths], [[], []]);
  const masked = context({}, {}, root, { maskedPaths: ["/sys/devices/system/cpu/cpu0/thermal_throttle"] });
  assert.equal(masked.maskedPaths?.length, 13);
});

test("the other fields of the spec are passed on", () => {
  const { capabilities, privileged, readonlyRootfs, noNewPrivs, selinuxOptions, runAsGroup } = context(
    {
      capabilities: { add: ["NET_ADMIN"] },
      privileged: true,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      seLinuxOptions: { type: "t" },
    },
    { runAsGroup: 7, seLinuxOptions: { level: "l" } },
  );
  assert.deepEqual(capabilities, { addCapabilities: ["NET_ADMIN"], dropCapabilities: [] });
  const prefixed = context({ capabilities: { add: ["CAP_NET_ADMIN"], drop: ["cap_chown", "CAP_", "ALL"] } });
  const asRuntimesWant = { addCapabilities: ["NET_ADMIN"], dropCapabilities: ["chown", "CAP_", "ALL"] };
  assert.deepEqual(prefixed.capabilities, asRuntimesWant, "runtimes put CAP_ before it themselves");
  assert.deepEqual([privileged, readonlyRootfs, noNewPrivs], [true, true, true]);
  assert.deepEqual(selinuxOptions, { type: "t" });
  assert.deepEqual(runAsGroup, { value: 7n });
  assert.equal(context({}).noNewPrivs, false);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { vectorText } from "../../test/support/vectors.ts";
import { decodeManifests } from "./decode.ts";
import { formatPath, type ManifestError } from "../yaml/manifest-error.ts";
import { prepareManifests } from "./prepare.ts";
import { validateStaticPod } from "./static-pod.ts";

/**
 * Small pods with at most one fault each: the results of Kubernetes 1.36.2's own decoder, defaults, ValidatePodCreate
 * and HasAPIObjectReference, as the kubelet applies these to static pods: `field: kind of error; …`, nothing,
 * `undecodable`, or the reference.
 */
const rows = vectorText("pod-verdicts.tsv")
  .trimEnd()
  .split("\n")
  .map((row) => row.split("\t"))
  .map(([manifest = "", verdict = ""]) => ({ manifest, verdict, problems: problemsOf(manifest) }));

/** What is refused here and not there, each of it in docs/compatibility/validation.md. */
const refusedHere: readonly (readonly [fragment: string, because: string])[] = [
  ["emptyDir: {medium: Disk}", "the kubelet fails to mount it"],
  ["hostPath: {path: a}", "the runtime refuses it"],
  ['image: "i j"', "the kubelet refuses to pull it"],
  ["hostIP: x", "the network plugin refuses it"],
  ["preStop: {tcpSocket", "the kubelet fails to run it"],
  ['type: Localhost, localhostProfile: ""', "the kubelet fails to start the container"],
  ["image: {reference", "not supported"],
  ["os: {name: windows}", "not supported"],
  ["example.com/gpu: 1}", "not supported"],
  ["kubernetes.io/gpu: 1}", "not supported"],
];

/** Fields that upstream's errors name by another's path, and where they are. */
const elsewhere: readonly (readonly [RegExp, string])[] = [
  [/^(spec\.volumes\[\d+\]\.projected)$/u, "$1.sources"],
  [/^(spec\.containers\[\d+\]\.volumeMounts)\.(\w+)$/u, "$1[0].$2"],
  [/^spec\.resources\.containers\[(\d+)\]\[(.*)\]\.limits$/u, "spec.containers[$1].resources.limits[$2]"],
  [/^spec\.securityContext\.shareProcessNamespace$/u, "spec.shareProcessNamespace"],
  [/^spec\.Host(\w+)$/u, "spec.host$1"],
  [/^spec\.nodeName$/u, "spec.schedulingGates"],
  [/^(metadata\.annotations)\.([-.a-z]+\/\w+).*$/u, "$1[$2]"],
  [/\.\{topologyKey, whenUnsatisfiable\}$/u, ".topologyKey"],
];

function parts(field: string): string[] {
  const moved = elsewhere.reduce((path, [from, to]) => path.replace(from, to), field);
  return moved.split(/\[\d+\]|[.[\]]/u).filter((part) => part !== "");
}

/** One names the other's field or what it is part of. */
function meansSame(a: string, b: string): boolean {
  const [short = [], long = []] = [parts(a), parts(b)].toSorted((one, other) => one.length - other.length);
  let at = 0;
  for (const part of long) if (part === short[at]) at++;
  return at === short.length;
}

function problemsOf(manifest: string): { readonly field: string; readonly detail: string }[] {
  const { objects, errors } = decodeManifests(new TextEncoder().encode(`---\n${manifest}`), "pod.yaml");
  const prepared = prepareManifests(objects);
  const static_ = prepared.pods.flatMap((pod) => validateStaticPod(pod.manifest, "node"));
  return [
    ...[...errors, ...prepared.errors].map(({ field = "", detail }: ManifestError) => ({ field, detail })),
    ...static_.map(({ path, detail }) => ({ field: formatPath(path), detail })),
  ];
}

test("a pod is rejected if upstream rejects it; other rejections are documented", () => {
  const used = new Set<string>();
  for (const { manifest, verdict, problems } of rows) {
    const listed = refusedHere.find(([fragment]) => manifest.includes(fragment));
    if (verdict === "" && problems.length > 0 && listed !== undefined) used.add(listed[0]);
    else assert.equal(problems.length > 0, verdict !== "", `${manifest}: ${verdict} ${JSON.stringify(problems)}`);
  }
  assert.deepEqual([...used].toSorted(), refusedHere.map(([fragment]) => fragment).toSorted());
  assert.ok(rows.length > 750);
});

/** Where upstream names another field of the same item than the one that is to be changed. */
const otherFields = [/^spec\.tolerations\[\d+\]\.operator$/u, /fieldRef\.fieldPath$/u, /\.namespace$/u, /\.type$/u];

test("an error refers to the field that upstream names, or to one inside it", () => {
  for (const { manifest, verdict, problems } of rows) {
    if (!verdict.includes(": ")) continue;
    if (problems.some(({ detail }) => detail.startsWith("not supported"))) continue;
    const upstream = verdict.split("; ").map((error) => error.slice(0, error.lastIndexOf(": ")));
    for (const field of upstream) {
      // Upstream also misses a volume that has a fault.
      if (field.endsWith("volumeMounts[0].name") && verdict.startsWith("spec.volumes")) continue;
      // And a request that is not written: it defaults to an invalid limit.
      if (field.includes(".requests") && !manifest.includes("requests")) continue;
      const near = otherFields.some((pattern) => pattern.test(field)) ? field.replace(/\.\w+$/u, "") : field;
      const told = problems.some((problem) => meansSame(problem.field, near));
      assert.ok(told, `${manifest}: ${verdict} ${JSON.stringify(problems)}`);
    }
  }
});

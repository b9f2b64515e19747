import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as z from "zod";
import { vectorJson, vectorText } from "../../test/support/vectors.ts";
import { PodManifest } from "../api/pod.ts";
import { canonicalJson } from "./canonical-json.ts";
import { decodeManifests } from "./decode.ts";
import { withDefaults } from "./defaults.ts";
import { prepareManifests } from "./prepare.ts";

type Path = readonly (string | number)[];

/** A pod that has every text that a pod may have. */
const everyText = vectorJson<object>("every-text.json");

/**
 * The result of Kubernetes 1.36.2's own decoder, defaults and validation for that pod with one empty text: the same as
 * unset (which may be rejected), accepted as a value, or rejected.
 */
const rows = vectorText("empty-texts.tsv")
  .trimEnd()
  .split("\n")
  .map((row) => row.split("\t"))
  .map(([place = "", means = ""]) => ({ path: toPath(place), means }));

function toPath(place: string): Path {
  const parts = place.replace("example.com/", "example·com/").split(".");
  return parts.map((part) => (/^\d+$/u.test(part) ? Number(part) : part.replace("·", ".")));
}

/** The pod with one text changed, or taken out. */
function changed(path: Path, text: string | undefined): object {
  const pod = structuredClone(everyText);
  const parent = path.slice(0, -1).reduce<object>((here, part) => Reflect.get(here, part) as object, pod);
  if (text === undefined) Reflect.deleteProperty(parent, path.at(-1) ?? "");
  else Reflect.set(parent, path.at(-1) ?? "", text);
  return pod;
}

interface Reading {
  readonly problems: readonly string[];
  readonly unsupported: readonly string[];
  /** With its defaults; undefined when it can't be decoded. */
  readonly pod: PodManifest | undefined;
}

function read(pod: object): Reading {
  const { objects, errors } = decodeManifests(new TextEncoder().encode(JSON.stringify(pod)), "pod.json");
  const [first] = objects;
  const all = [...errors, ...prepareManifests(objects).errors];
  const isUnsupported = (detail: string): boolean => detail.startsWith("not supported");
  return {
    problems: all.filter(({ detail }) => !isUnsupported(detail)).map(({ field = "" }) => field),
    unsupported: all.filter(({ detail }) => isUnsupported(detail)).map(({ field = "" }) => field),
    pod: first?.kind === "Pod" ? withDefaults(first.manifest) : undefined,
  };
}

const placeOf = (path: Path): string =>
  path.reduce<string>((text, part) => (typeof part === "number" ? `${text}[${part}]` : `${text}.${part}`), "").slice(1);

test("an empty text is unset, a value, or an error, depending on the field's type in Kubernetes", () => {
  assert.deepEqual(read(everyText).problems, []);
  for (const { path, means } of rows) {
    const place = placeOf(path);
    const empty = read(changed(path, ""));
    if (empty.unsupported.some((field) => place.startsWith(field)) && means !== "not given") continue;
    // Taken there, and then the container cannot start: refused here.
    if (/seccompProfile\.localhostProfile$|volumes\[\d+\]\.image\.reference$/u.test(place)) continue;
    if (means === "taken") {
      assert.deepEqual(empty.problems, [], place);
      assert.equal(textAt(empty.pod, path), "", place);
    } else if (means === "not given") {
      const absent = read(changed(path, undefined));
      assert.deepEqual(empty.problems, [], place);
      // These two cannot be distinguished.
      if (!place.endsWith("env[0].value")) assert.equal(canonicalJson(empty.pod), canonicalJson(absent.pod), place);
    } else assert.ok(empty.problems.length > 0, `${place} is not refused`);
  }
});

function textAt(pod: PodManifest | undefined, path: Path): unknown {
  return path.reduce<unknown>((here, part) => Reflect.get(here as object, part), pod);
}

/** Texts of the schema that no row is about. */
const without = new Set([
  "apiVersion",
  "kind",
  // No static pod may have these.
  "spec.containers.*.targetContainerName",
  "spec.schedulingGates.*.name",
  // Refused for a Linux pod, with whatever they hold.
  ...["gmsaCredentialSpecName", "gmsaCredentialSpec", "runAsUserName"].map((field) => `windowsOptions.${field}`),
  // Claims of devices are refused as a whole.
  "resources.claims.*.name",
  "resources.claims.*.request",
]);

test("every text field of a pod's schema has its row", () => {
  const known = new Set(rows.map(({ path }) => path.map((part) => (typeof part === "number" ? "*" : part)).join(".")));
  const missing = [...textsOf(PodManifest)].filter((place) => {
    return !known.has(place) && ![...without].some((end) => place === end || place.endsWith(`.${end}`));
  });
  assert.deepEqual(missing, []);
});

/** Schemas that are used in several places are tested at the pod's place. */
const twins: readonly (readonly [RegExp, string])[] = [
  [/^spec\.(?:init|ephemeral)Containers/u, "spec.containers"],
  [/podAntiAffinity/u, "podAffinity"],
  [/(?:liveness|readiness|startup)Probe\.httpGet/u, "livenessProbe.httpGet"],
  [/(?:liveness|readiness|startup)Probe\.tcpSocket/u, "readinessProbe.tcpSocket"],
  [/(?:liveness|readiness|startup)Probe\.exec/u, "startupProbe.exec"],
  [/(?:liveness|readiness|startup)Probe\.grpc/u, "livenessProbe.grpc"],
  [/(?:postStart|preStop)\.httpGet/u, "postStart.httpGet"],
  [/(?:postStart|preStop)\.tcpSocket/u, "postStart.tcpSocket"],
  [/lifecycle\.\w+\.tcpSocket\.host$/u, "readinessProbe.tcpSocket.host"],
  [/(?:postStart|preStop)\.exec/u, "preStop.exec"],
  [
    /preferredDuringSchedulingIgnoredDuringExecution\.\*\.podAffinityTerm/u,
    "requiredDuringSchedulingIgnoredDuringExecution.*",
  ],
  [/namespaceSelector/u, "labelSelector"],
  [/mismatchLabelKeys/u, "matchLabelKeys"],
  [
    /^spec\.topologySpreadConstraints\.\*\.(labelSelector|matchLabelKeys)/u,
    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.*.$1",
  ],
  [/volumeClaimTemplate\.metadata/u, "metadata"],
  [/^.*\.metadata\.(?=\w)/u, "metadata."],
];

function* textsOf(schema: unknown, place = ""): Iterable<string> {
  const inner = unwrapped(schema);
  const at = (part: string): string => (place === "" ? part : `${place}.${part}`);
  if (inner instanceof z.ZodObject) {
    for (const [name, field] of Object.entries(inner.shape)) yield* textsOf(field, at(name));
  } else if (inner instanceof z.ZodArray) yield* textsOf(inner.element, at("*"));
  else if (inner instanceof z.ZodString || inner instanceof z.ZodEnum) {
    yield twins.reduce((text, [from, to]) => text.replace(from, to), place);
  }
}

function unwrapped(schema: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return unwrapped(schema.unwrap());
  return schema instanceof z.ZodPipe && schema.in instanceof z.ZodTransform ? unwrapped(schema.out) : schema;
}

test("empty values that Helm writes get the defaults", () => {
  const text = readFileSync(new URL("../../test/fixtures/cases/empty-texts.yaml", import.meta.url));
  const { objects, errors } = decodeManifests(text, "empty-texts.yaml");
  const { pods, errors: problems } = prepareManifests(objects);
  assert.deepEqual([...errors, ...problems], []);
  const spec = pods[0]?.manifest.spec;
  assert.equal(spec?.restartPolicy, "Always");
  assert.equal(spec.dnsPolicy, "ClusterFirst");
  assert.equal(spec.schedulerName, "default-scheduler");
  assert.equal(spec.serviceAccountName, undefined);
  const [container] = spec.containers;
  assert.equal(container?.imagePullPolicy, "IfNotPresent");
  assert.equal(container.terminationMessagePolicy, "File");
  assert.equal(container.terminationMessagePath, "/dev/termination-log");
  assert.equal(container.ports?.[0]?.protocol, "TCP");
});

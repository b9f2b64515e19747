/** A position of a scalar in a document. Positions of the same document can be tested together. */
export interface Position {
  readonly name: string;
  readonly document: "values" | "pod" | "file";
  /** Inserts its lines into a pod. */
  readonly slot: "metadata" | "spec" | "container" | "top";
  readonly lines: (scalar: string) => string;
  /** The name of the scalar's place in errors. */
  readonly field: string;
  /** Selects the scalar's value from the document's. */
  readonly pick: (document: Read) => unknown;
  /** Scalars that are tested here; default: all. */
  readonly takes?: RegExp;
}

/** The inspected part of plain values or of a manifest. */
export interface Read {
  readonly [name: string]: unknown;
  readonly metadata: { readonly labels?: unknown };
  readonly data?: unknown;
  readonly spec: {
    readonly hostname?: string;
    readonly priority?: number;
    readonly terminationGracePeriodSeconds?: number;
    readonly hostNetwork?: boolean;
    readonly overhead: { readonly cpu: unknown };
    readonly securityContext: { readonly supplementalGroups: unknown };
    readonly containers: readonly [
      { readonly args?: unknown; readonly livenessProbe: { readonly httpGet: { readonly port: unknown } } },
    ];
  };
}

/** Whether it can be a key: on one line, and with a text if it has a tag. */
const asKey = /^(?:[^\n!]|![^ \n]* [^ \n])*$/u;
/** Excludes text that would end the scalar there, or be several. */
const inBrackets = /^(?!-$)[^\n:?#&*!|>{}[\],'"]*$|^"(?:[^"\\]|\\.)*"$|^'[^']*'$/u;

type Pick = Position["pick"];

const value = (name: string, field: string, lines: Position["lines"], pick: Pick, takes?: RegExp): Position => ({
  ...{ name, document: "values", slot: "top", lines, field, pick },
  ...(takes && { takes }),
});
const inPod = (
  name: string,
  slot: Position["slot"],
  field: string,
  lines: Position["lines"],
  pick: Pick,
): Position => ({
  ...{ name, document: "pod", slot, lines, field, pick },
});

/** The first position gives the scalar's plain value, which most others give, too. */
export const positions: readonly Position[] = [
  value(
    "value",
    "a",
    (scalar) => `a: ${scalar}\n`,
    ({ a }) => a,
  ),
  value(
    "item",
    "b[0]",
    (scalar) => `b:\n- ${scalar}\n`,
    ({ b }) => first(b, 1),
  ),
  value(
    "in brackets",
    "c[0]",
    (scalar) => `c: [${scalar}, 1]\n`,
    ({ c }) => first(c, 2),
    inBrackets,
  ),
  value(
    "key",
    "d",
    (scalar) => `d:\n  ${scalar}: 1\n`,
    ({ d }) => onlyKey(d),
    asKey,
  ),
  value(
    "key in braces",
    "e",
    (scalar) => `e: {${scalar}: 1}\n`,
    ({ e }) => onlyKey(e),
    inBrackets,
  ),
  {
    ...{ name: "file", document: "file", slot: "top", field: "data" },
    lines: (scalar) => `  ${scalar}: v\n`,
    pick: ({ data }) => onlyKey(data ?? null),
    takes: asKey,
  },
  inPod(
    "text",
    "spec",
    "spec.hostname",
    (scalar) => `  hostname: ${scalar}\n`,
    ({ spec }) => spec.hostname ?? "",
  ),
  inPod(
    "int32",
    "spec",
    "spec.priority",
    (scalar) => `  priority: ${scalar}\n`,
    ({ spec }) => spec.priority ?? null,
  ),
  inPod(
    "int64",
    "spec",
    "spec.terminationGracePeriodSeconds",
    (scalar) => `  terminationGracePeriodSeconds: ${scalar}\n`,
    ({ spec }) => spec.terminationGracePeriodSeconds ?? null,
  ),
  inPod(
    "bool",
    "spec",
    "spec.hostNetwork",
    (scalar) => `  hostNetwork: ${scalar}\n`,
    ({ spec }) => spec.hostNetwork ?? false,
  ),
  inPod(
    "quantity",
    "spec",
    "spec.overhead.cpu",
    (scalar) => `  overhead:\n    cpu: ${scalar}\n`,
    ({ spec }) => spec.overhead.cpu,
  ),
  inPod(
    "port",
    "container",
    "spec.containers[0].livenessProbe.httpGet.port",
    (scalar) => `    livenessProbe:\n      httpGet:\n        port: ${scalar}\n`,
    ({ spec }) => spec.containers[0].livenessProbe.httpGet.port,
  ),
  inPod(
    "texts",
    "container",
    "spec.containers[0].args[0]",
    (scalar) => `    args:\n    - ${scalar}\n`,
    ({ spec }) => spec.containers[0].args,
  ),
  inPod(
    "int64s",
    "spec",
    "spec.securityContext.supplementalGroups[0]",
    (scalar) => `  securityContext:\n    supplementalGroups:\n    - ${scalar}\n`,
    ({ spec }) => spec.securityContext.supplementalGroups,
  ),
  inPod(
    "label",
    "metadata",
    "metadata.labels.k",
    (scalar) => `  labels:\n    k: ${scalar}\n`,
    ({ metadata }) => metadata.labels,
  ),
];

/** A document with a scalar at each of these positions, which must belong to the same kind of document. */
export function documentWith(some: readonly Position[], scalar: string): string {
  const at = (slot: Position["slot"]): string =>
    some.flatMap((position) => (position.slot === slot ? [position.lines(scalar)] : [])).join("");
  switch (some[0]?.document) {
    case "file":
      return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n${at("top")}`;
    case "pod": {
      const head = `apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n${at("metadata")}`;
      return `${head}spec:\n${at("spec")}  containers:\n  - name: c\n    image: i\n${at("container")}`;
    }
    default:
      return at("top");
  }
}

function first(list: unknown, length: number): unknown {
  return Array.isArray(list) && list.length === length ? (list as unknown[])[0] : list;
}

function onlyKey(map: unknown): unknown {
  const names = typeof map === "object" && map !== null ? Object.keys(map) : [];
  return names.length === 1 ? names[0] : map;
}

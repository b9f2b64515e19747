import type { PersistentVolume } from "../api/persistent-volume.ts";

type Required = NonNullable<NonNullable<PersistentVolume["spec"]["nodeAffinity"]>["required"]>;
type Term = Required["nodeSelectorTerms"][number];

/** A CSI driver's node labels. */
export interface TopologyKeys {
  readonly zone: string;
  /** Undefined: the driver has none. */
  readonly region?: string;
}

const stable = { zone: "topology.kubernetes.io/zone", region: "topology.kubernetes.io/region" };
const beta = {
  zone: "failure-domain.beta.kubernetes.io/zone",
  region: "failure-domain.beta.kubernetes.io/region",
};

/**
 * The volume with its zone, and its region if the driver has one, in its CSI driver's node labels: from its node
 * affinity, or else from its own labels. Pure.
 */
export function withTopology(volume: PersistentVolume, { zone, region }: TopologyKeys): PersistentVolume {
  const labels = volume.metadata.labels ?? {};
  const found = volume.spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const from =
    [stable, beta].find((keys) => has(found, keys.zone)) ??
    [stable, beta].find((keys) => keys.zone in labels) ??
    stable;
  let terms = moved(
    found,
    from.zone,
    zone,
    (region === undefined ? labels[from.zone]?.split("__") : [labels[from.zone] ?? ""]) ?? [],
  );
  if (region !== undefined) terms = moved(terms, from.region, region, [labels[from.region] ?? ""]);
  else if (from === beta) terms = renamed(terms, beta.region, stable.region);
  if (terms.length === 0) return volume;
  return { ...volume, spec: { ...volume.spec, nodeAffinity: { required: { nodeSelectorTerms: terms } } } };
}

function has(terms: readonly Term[], key: string): boolean {
  return terms.some(({ matchExpressions = [] }) => matchExpressions.some((each) => each.key === key));
}

/** @param values added to each term that does not contain the label */
function moved(terms: Term[], from: string, to: string, values: readonly string[]): Term[] {
  if (has(terms, from)) return renamed(terms, from, to);
  const known = [...new Set(values.map((value) => value.trim()))].filter((value) => value !== "").toSorted();
  if (known.length === 0) return terms;
  const requirement = { key: to, operator: "In", values: known };
  return (terms.length === 0 ? [{}] : terms).map((term: Term) => {
    return { ...term, matchExpressions: [...(term.matchExpressions ?? []), requirement] };
  });
}

function renamed(terms: readonly Term[], from: string, to: string): Term[] {
  return terms.map((term) => {
    if (term.matchExpressions === undefined) return term;
    const matchExpressions = term.matchExpressions.map((each) => (each.key === from ? { ...each, key: to } : each));
    return { ...term, matchExpressions };
  });
}

import * as z from "zod";
import { Int32, LabelSelector, OptionalText } from "./meta.ts";

/** Parts of a pod's spec that only a scheduler uses; the node reads only the required node affinity. */

const NodeSelectorRequirement = z.strictObject({
  key: z.string(),
  operator: OptionalText,
  values: z.array(z.string()).optional(),
});

const NodeSelectorTerm = z.strictObject({
  matchExpressions: z.array(NodeSelectorRequirement).optional(),
  matchFields: z.array(NodeSelectorRequirement).optional(),
});

const NodeAffinity = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: z
    .strictObject({ nodeSelectorTerms: z.array(NodeSelectorTerm).optional() })
    .optional(),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(z.strictObject({ weight: Int32.default(0), preference: NodeSelectorTerm.default({}) }))
    .optional(),
});

const PodAffinityTerm = z.strictObject({
  labelSelector: LabelSelector.optional(),
  namespaces: z.array(z.string()).optional(),
  topologyKey: OptionalText,
  namespaceSelector: LabelSelector.optional(),
  matchLabelKeys: z.array(z.string()).optional(),
  mismatchLabelKeys: z.array(z.string()).optional(),
});

const PodAffinity = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: z.array(PodAffinityTerm).optional(),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(z.strictObject({ weight: Int32.default(0), podAffinityTerm: PodAffinityTerm.default({}) }))
    .optional(),
});

export const Affinity = z.strictObject({
  nodeAffinity: NodeAffinity.optional(),
  podAffinity: PodAffinity.optional(),
  podAntiAffinity: PodAffinity.optional(),
});

export const TopologySpreadConstraint = z.strictObject({
  maxSkew: Int32.default(0),
  topologyKey: OptionalText,
  whenUnsatisfiable: OptionalText,
  labelSelector: LabelSelector.optional(),
  minDomains: Int32.optional(),
  nodeAffinityPolicy: z.string().optional(),
  nodeTaintsPolicy: z.string().optional(),
  matchLabelKeys: z.array(z.string()).optional(),
});

export const SchedulingGate = z.strictObject({ name: OptionalText });
export const SchedulingGroup = z.strictObject({ podGroupName: z.string().optional() });

export type NodeSelectorRequirement = z.infer<typeof NodeSelectorRequirement>;
export type NodeSelectorTerm = z.infer<typeof NodeSelectorTerm>;
export type PodAffinityTerm = z.infer<typeof PodAffinityTerm>;
export type PodAffinity = z.infer<typeof PodAffinity>;
export type Affinity = z.infer<typeof Affinity>;
export type TopologySpreadConstraint = z.infer<typeof TopologySpreadConstraint>;

import type { Pod } from "../../api/pod.ts";
import { killNodeLater } from "./kill-node.ts";
import { isUnderPressure } from "./pressure-steps.ts";
import type { Act, Stage } from "./stage.ts";

/** Whether project quotas measure volumes of a seed's life. */
export function hasQuotas(seed: number): boolean {
  return isUnderPressure(seed) && Math.floor(seed / 9) % 2 === 1;
}

/** The volume that a pod fills, and its limit. */
const volume = "filled";
const limitBytes = 2 ** 20;
const lookMs = 500;

/** Actions on volumes with project quotas, and on the lists of projects. */
export const quotaActs = {
  /** A pod that writes more or less than its volume's limit, some of it into files without a name. */
  addFillingPod: (stage, random) => {
    const pod = withSizedVolume(stage.newPod(random));
    stage.want(pod);
    const bytes = Math.trunc(random.uniform() * 2 * limitBytes);
    const hidden = Math.trunc(bytes * random.pick([0, 0.5, 1]));
    const afterMs = random.integer(lookMs, 120_000);
    // While podwright is down: only the quota of its earlier run shows all of it.
    if (random.chance(0.5)) {
      killNodeLater(stage, "podwright to be killed before a pod fills its volume", afterMs - lookMs);
    }
    stage.clock.schedule("a pod to fill its volume", afterMs, () => fill(stage, pod, bytes - hidden, hidden, 200));
  },
  othersTakeProject: ({ node }) => node.quotas.othersTakeProject(),
  /** As by quotaoff(8). */
  turnQuotasOff: ({ node, clock, strike }, random) => {
    strike("quotas off");
    node.quotas.isOn = false;
    clock.schedule("quotas to be turned on", random.integer(1000, 120_000), () => {
      node.quotas.isOn = true;
    });
  },
} satisfies Record<string, Act>;

export type QuotaStepKind = keyof typeof quotaActs;

/** Relative frequency of each kind. */
export const quotaWeights: Readonly<Record<QuotaStepKind, number>> = {
  addFillingPod: 8,
  othersTakeProject: 4,
  turnQuotasOff: 1,
};

/** Where the pod's volume is. */
export function filledDirectory(uid: string): string {
  return `/var/lib/kubelet/pods/${uid}/volumes/kubernetes.io~empty-dir/${volume}`;
}

/** Whether the pod's volume has more than its limit. @param seen as far as podwright can see */
export async function isOverfull(
  { node: { quotas } }: Pick<Stage, "node">,
  { metadata, spec }: Pod,
  seen: boolean,
): Promise<boolean> {
  if (!spec.volumes?.some(({ name }) => name === volume)) return false;
  const directory = filledDirectory(metadata.uid);
  return (await (seen ? quotas.visible(directory) : quotas.filled(directory))) > limitBytes;
}

/** As soon as the volume is there. */
function fill(stage: Stage, pod: Pod, named: number, hidden: number, tries: number): void {
  const { node, clock } = stage;
  const { uid } = pod.metadata;
  void node.quotas.fill(filledDirectory(uid), named, hidden).then((isDone) => {
    if (isDone || tries === 0 || !node.desired.has(uid)) return;
    clock.schedule("a pod to fill its volume", lookMs, () => fill(stage, pod, named, hidden, tries - 1));
  });
}

function withSizedVolume(pod: Pod): Pod {
  const { spec } = pod;
  const mounting = <T extends { readonly volumeMounts?: readonly object[] | undefined }>(container: T): T => ({
    ...container,
    volumeMounts: [...(container.volumeMounts ?? []), { name: volume, mountPath: `/${volume}` }],
  });
  return {
    ...pod,
    spec: {
      ...spec,
      ...(spec.hostNetwork !== true && { hostUsers: false }),
      volumes: [...(spec.volumes ?? []), { name: volume, emptyDir: { sizeLimit: String(limitBytes) } }],
      containers: spec.containers.map(mounting),
    },
  };
}

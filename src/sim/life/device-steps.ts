import { deviceVolumes, diskDevice } from "../csi/claimed-volumes.ts";
import { killNodeLater } from "./kill-node.ts";
import { withClaimed } from "./pod-driver-volumes.ts";
import { simplePod } from "./simple-pod.ts";
import type { Act } from "./stage.ts";

/** Actions on the node's disks, and on volumes that one pod at a time may use. */
export const deviceActs = {
  /** A disk that cannot be read looks empty. */
  unreadableDisk: ({ clock, faults, node, strike }, random) => {
    strike("disk unreadable");
    node.disks.isUnreadable = true;
    clock.schedule("a disk to be readable again", random.integer(2000, 200_000), () => {
      if (!faults.hasEnded) node.disks.isUnreadable = false;
    });
  },
  failingFormat: ({ clock, faults, node, strike }, random) => {
    strike("mkfs fails");
    node.disks.failsToFormat = true;
    clock.schedule("mkfs to succeed again", random.integer(2000, 200_000), () => {
      if (!faults.hasEnded) node.disks.failsToFormat = false;
    });
  },
  /** When nobody uses it. */
  exchangeDisk: ({ node, strike }) => {
    if (node.mounts.isMounted(diskDevice)) return;
    strike("disk exchanged");
    node.disks.exchange(diskDevice);
  },
  /** Two pods want a volume that one at a time may use; the first goes after a while, perhaps before it has it. */
  competingPods: (stage, random) => {
    const { clock, faults, node, newPod, want, unwant } = stage;
    const [exclusive] = deviceVolumes.filter(({ isExclusive }) => isExclusive);
    if (exclusive === undefined) return;
    const [first, second] = [1, 2].map((number) =>
      withClaimed(simplePod(newPod(random, `competes-${Math.trunc(clock.nowMs)}-${number}`, number), {}), [exclusive]),
    );
    if (first === undefined || second === undefined) return;
    want(first);
    clock.schedule("a second pod to want the volume", random.pick([0, random.integer(0, 20_000)]), () => {
      if (!faults.hasEnded) want(second);
    });
    clock.schedule("the first pod to go", random.integer(1000, 60_000), () => {
      if (!faults.hasEnded && node.desired.has(first.metadata.uid)) unwant(first.metadata.uid);
    });
    if (random.chance(0.5)) {
      killNodeLater(stage, "podwright to be killed beside competing pods", random.integer(0, 30_000));
    }
  },
} satisfies Record<string, Act>;

export type DeviceStepKind = keyof typeof deviceActs;

export const deviceWeights: Readonly<Record<DeviceStepKind, number>> = {
  unreadableDisk: 2,
  failingFormat: 1,
  exchangeDisk: 2,
  competingPods: 4,
};

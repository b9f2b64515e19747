import { isRecorded } from "./recorded.ts";
import type { Volume } from "../../api/volume.ts";
import { claimedVolumes, inlineDriver, plainDriver } from "../csi/claimed-volumes.ts";
import type { SimDriver } from "../csi/driver.ts";
import type { DriverFaults } from "../csi/driver-faults.ts";
import { recordOf } from "../csi/record-paths.ts";
import type { SimRandom } from "../random.ts";
import { simplePod } from "./simple-pod.ts";
import type { Act, Stage } from "./stage.ts";

/** Actions on CSI drivers, their mounts, and the objects of their volumes. */
export const driverActs = {
  /** Its process dies, and restarts later, sometimes as another version. */
  restartDriver: (stage, random) =>
    onDriver(stage, random, (driver) => {
      stage.strike("CSI driver ended");
      driver.stop(random.chance(0.5));
      const forMs = random.pick([random.integer(0, 2000), random.integer(2000, 200_000)]);
      // By the time that it is away, so that a life's other events stay what they are.
      if (forMs % 2 === 0) driver.upgrade();
      later(stage, "a CSI driver to be started again", forMs, () => driver.start());
    }),
  /** Its registration ends, briefly or for longer, while the driver keeps running. */
  deregisterDriver: (stage, random) =>
    onDriver(stage, random, (driver) => {
      stage.strike("CSI driver deregistered");
      if (random.chance(0.7)) driver.unregister();
      const forMs = random.pick([0, random.integer(0, 2000), random.integer(2000, 200_000)]);
      if (forMs % 2 === 1) driver.upgrade();
      later(stage, "a CSI driver to register again", forMs, () => driver.register());
    }),
  refusingDriver: (stage, random) => misbehave(stage, random, { refuses: random.pick([0.3, 1]) }),
  /** Meanwhile a pod is added, and removed before it has its volume. */
  uncertainDriver: (stage, random) => {
    const [doubts, lies] = [random.pick([0, 0.3]), random.pick([0.3, 0.7, 1])];
    misbehave(stage, random, { doubts, lies });
    const { clock, node, newPod, want, unwant } = stage;
    const claimName = random.pick(["claim-1", "claim-2"]);
    const volumes: Volume[] = [{ name: "data", persistentVolumeClaim: { claimName } }];
    const pod = simplePod(newPod(random, `brief-${Math.trunc(clock.nowMs)}`), { volumes });
    want(pod);
    later(stage, "a pod to go before it has its volume", random.integer(2000, 10_000), () => {
      if (node.desired.has(pod.metadata.uid)) unwant(pod.metadata.uid);
    });
  },
  hangingDriver: (stage, random) => misbehave(stage, random, { hangs: random.pick([0.3, 1]) }),
  slowDriver: (stage, random) => misbehave(stage, random, { longestMs: random.pick([5000, 100_000]), repeats: 0.3 }),
  /** podwright is killed when a call begins or ends. */
  killNodeAtDriver: (stage, random) =>
    onDriver(stage, random, (driver) => {
      const { node, clock, faults } = stage;
      const pauseMs = random.integer(0, 20_000);
      let left = random.integer(1, 6);
      const watch = driver.onCall(() => {
        if (--left > 0) return;
        watch[Symbol.dispose]();
        if (faults.hasEnded || !node.isUp) return;
        // At the same time, but not within the call.
        clock.schedule("podwright to be killed at a driver's call", 0, () => {
          if (faults.hasEnded) return;
          stage.strike("podwright killed at a driver's call");
          node.kill();
          clock.schedule("podwright to be started again", pauseMs, () => node.start());
        });
      });
    }),
  slowAttacher: ({ cluster, strike }, random) => {
    strike("volumes attached late");
    cluster?.storage?.slowDown(random.integer(5000, 200_000));
  },
  /** Its driver needs no attachment, but that is unknown without its CSIDriver object, which comes after a pod. */
  lateDriverObject: (stage, random) => {
    const storage = stage.cluster?.storage;
    if (storage === undefined) return;
    stage.strike("CSIDriver object deleted");
    const back = storage.withoutObject(plainDriver.name);
    const claims = claimedVolumes.filter(({ driver }) => driver === plainDriver.name);
    const volumes: Volume[] = claims.map(({ claim: claimName }) => ({
      name: claimName,
      persistentVolumeClaim: { claimName },
    }));
    stage.want(simplePod(stage.newPod(random, `early-${Math.trunc(stage.clock.nowMs)}`), { volumes }));
    const forMs = random.pick([random.integer(0, 5000), random.integer(5000, 300_000)]);
    later(stage, "a CSIDriver object to return", forMs, back);
  },
  bindClaims: ({ cluster }) => {
    for (const volume of cluster?.storage?.volumes ?? []) cluster?.storage?.bind(volume);
  },
  /** It is missing for a while, then recreated, and bound later. */
  replaceClaim: (stage, random) => {
    const storage = stage.cluster?.storage;
    const volume = random.pickFrom(storage?.volumes ?? []);
    if (volume === undefined || storage === undefined) return;
    stage.strike("claim deleted");
    storage.deleteClaim(volume);
    later(stage, "a claim to return", random.integer(0, 60_000), () => storage.claim(volume));
    later(stage, "a claim to be bound", random.integer(0, 120_000), () => storage.bind(volume));
  },
  /**
   * podwright is killed while two pods wait for a claim, one of them with a CSI volume. When it is back, both pods are
   * gone, and the drivers do not respond.
   */
  leaveVolumes: (stage, random) => {
    const { clock, node, cluster, newPod, want } = stage;
    const storage = cluster?.storage;
    const volume = claimedVolumes.at(-1);
    if (storage === undefined || volume === undefined) return;
    storage.deleteClaim(volume);
    const missing: Volume = { name: "missing", persistentVolumeClaim: { claimName: volume.claim } };
    const inline: Volume = { name: "inline", csi: { driver: inlineDriver.name } };
    const pods = [
      [inline, missing],
      [{ name: "scratch", emptyDir: {} }, missing],
    ].map((volumes, number) =>
      simplePod(newPod(random, `left-${Math.trunc(clock.nowMs)}-${number}`, number), { volumes }),
    );
    for (const pod of random.chance(0.7) ? pods : pods.toReversed()) want(pod);
    const hangsMs = random.integer(100_000, 300_000);
    later(stage, "podwright to be killed beside waiting pods", random.integer(10_000, 60_000), () => {
      stage.strike("podwright killed");
      node.kill();
      for (const { metadata } of pods) cluster?.delete(metadata.uid, 0);
      for (const driver of node.drivers.all) driver.faults = { ...driver.usual, hangs: 1 };
      clock.schedule("podwright to be started again", 1000, () => node.start());
      later(stage, "drivers to answer again", hangsMs, () => {
        for (const driver of node.drivers.all) driver.faults = driver.usual;
      });
      later(stage, "a claim to return", hangsMs, () => storage.claim(volume));
    });
  },
  growClaim: ({ cluster, strike }, random) => {
    const volume = random.pickFrom(cluster?.storage?.volumes ?? []);
    if (volume === undefined) return;
    strike("volume grows");
    cluster?.storage?.grow(volume);
  },
  /** A pod goes while its driver, which is slow, works on its volume. */
  endPodDuringCall: (stage, random) => {
    const { clock, faults, node, newPod, want, unwant } = stage;
    const claim = random.pickFrom(claimedVolumes.filter(({ isLate }) => !isLate));
    const isInline = claim === undefined || random.chance(0.3);
    const driver = node.drivers.named(isInline ? inlineDriver.name : claim.driver);
    if (driver === undefined) return;
    const source = isInline
      ? { csi: { driver: driver.kind.name } }
      : { persistentVolumeClaim: { claimName: claim.claim } };
    const pod = simplePod(newPod(random, `short-${Math.trunc(clock.nowMs)}`), {
      volumes: [{ name: "data", ...source }],
    });
    const { uid } = pod.metadata;
    const afterMs = random.pick([0, random.integer(0, 5000)]);
    const watch = driver.onCall(({ method, target, when }) => {
      if (when !== "begins" || (method !== "stage" && !target.includes(uid))) return;
      watch[Symbol.dispose]();
      clock.schedule("a pod to go during a driver's call", afterMs, () => {
        if (!faults.hasEnded && node.desired.has(uid)) unwant(uid);
      });
    });
    stage.strike("CSI driver slow while a pod goes");
    driver.faults = { ...driver.usual, longestMs: 60_000 };
    later(stage, "a CSI driver to be fast again", 60_000, () => {
      driver.faults = driver.usual;
    });
    want(pod);
  },
  /**
   * podwright's machine loses what it last wrote: the data file of a mounted volume is cut off when it starts again. If
   * its pod could not be recorded either, nothing says what is mounted, and it stays.
   */
  damageRecord: (stage, random) => {
    const { node, clock } = stage;
    const isIdentified = (target: string): boolean => {
      const uid = /\/pods\/([^/]+)\//u.exec(target)?.[1];
      return uid === undefined || isRecorded(node.files, uid);
    };
    const target = random.pickFrom([...node.drivers.volumes.published.keys()].filter((each) => isIdentified(each)));
    if (target === undefined || !node.isUp) return;
    const staging = node.drivers.volumes.staged.get(node.drivers.volumes.published.get(target) ?? "");
    const record = recordOf(staging !== undefined && random.chance(0.3) ? staging : target);
    stage.strike("data file of a volume damaged");
    node.kill();
    const text = '{"driverName":"staging'.slice(0, random.integer(0, 22));
    void node.files.write(record, text, 0o644).catch(() => {});
    clock.schedule("podwright to be started again", random.integer(0, 20_000), () => node.start());
  },
  /** Mounts are gone, and files remain. */
  rebootNode: ({ node, strike }) => {
    strike("power lost");
    node.power.off("power lost");
  },
} satisfies Record<string, Act>;

export type DriverStepKind = keyof typeof driverActs;

/** How often each kind comes, compared with the others; the rest come in some lives only. */
export const driverWeights: Readonly<
  Record<Exclude<DriverStepKind, "growClaim" | "endPodDuringCall" | "lateDriverObject">, number>
> = {
  restartDriver: 4,
  deregisterDriver: 3,
  refusingDriver: 2,
  uncertainDriver: 4,
  hangingDriver: 3,
  slowDriver: 2,
  killNodeAtDriver: 6,
  slowAttacher: 2,
  bindClaims: 2,
  replaceClaim: 2,
  leaveVolumes: 3,
  damageRecord: 2,
  rebootNode: 1,
};

function onDriver({ node }: Stage, random: SimRandom, then: (driver: SimDriver) => void): void {
  const driver = random.pickFrom(node.drivers.all);
  if (driver !== undefined) then(driver);
}

function misbehave(stage: Stage, random: SimRandom, faults: Partial<DriverFaults>): void {
  const forMs = random.integer(2000, 200_000);
  onDriver(stage, random, (driver) => {
    stage.strike("CSI driver misbehaves");
    driver.faults = { ...driver.usual, ...faults };
    later(stage, "a CSI driver to behave again", forMs, () => {
      driver.faults = driver.usual;
    });
  });
}

/** After the faults have ended, this is not needed. */
function later({ clock, faults, node }: Stage, name: string, forMs: number, then: () => void): void {
  clock.schedule(name, forMs, () => {
    if (!faults.hasEnded && !node.power.isOff) then();
  });
}

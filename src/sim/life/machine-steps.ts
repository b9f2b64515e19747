import { tableNames } from "../firewall.ts";
import { killSandbox } from "./kill-sandbox.ts";
import type { Act } from "./stage.ts";

/** More than all pods may use. */
const tooMuchBytes = 64 * 2 ** 30;

/** Actions on the machine itself. */
export const machineActs = {
  shutDown: ({ node, strike }) => {
    strike("the machine shuts down");
    node.power.login.announce();
  },
  cancelShutdown: ({ node, clock, strike }, random) => {
    strike("the machine shuts down");
    node.power.login.announce();
    clock.schedule("the shutdown to be cancelled", random.integer(0, 25_000), () => node.power.login.cancel());
  },
  /**
   * Podwright is killed during a shutdown, once or twice, and restarted; meanwhile another program delays the shutdown, and
   * sandboxes may be lost. Processes may ignore that they shall stop, so that some outlive podwright.
   */
  killInShutdown: (stage, random) => {
    const { node, clock, world, strike, newPod, want } = stage;
    strike("the machine shuts down");
    const areStubborn = random.chance(0.5);
    for (const container of world.containers.values()) {
      if (areStubborn) container.behaviour = { ...container.behaviour, deaf: true };
    }
    const { login } = node.power;
    const lock = login.isPreparing || node.power.isOff ? undefined : login.lock(() => true);
    login.announce();
    for (let times = random.integer(1, 2); times > 0; times--) {
      clock.schedule("podwright to be killed in a shutdown", random.integer(0, 20_000), () => {
        strike("podwright killed");
        node.kill();
        const loses = (): void => killSandbox(stage, random);
        // Before podwright starts again, when the pod is rejected, or while its group waits for those before it.
        for (let deaths = random.integer(0, 3); deaths > 0; deaths--) {
          clock.schedule("a sandbox to die in a shutdown", random.integer(0, 12_000), loses);
        }
        clock.schedule("podwright to be started again", random.integer(0, 3000), () => node.start());
      });
    }
    clock.schedule("another program to be ready for the shutdown", random.integer(0, 25_000), () => {
      lock?.[Symbol.dispose]();
    });
    // A pod that is added while podwright is down, or a little earlier or later.
    const pod = newPod(random);
    if (random.chance(0.5)) clock.schedule("a pod to come in a shutdown", random.integer(0, 20_000), () => want(pod));
  },
  losePower: ({ node, strike }) => {
    strike("power lost");
    node.power.off("power lost");
  },
  flushTables: ({ node, strike }, random) => {
    strike("iptables flushed");
    node.firewall.flush(random.chance(0.5) ? tableNames : [random.pick(tableNames)]);
  },
  failingTables: ({ node, clock, strike }, random) => {
    strike("iptables fails");
    node.firewall.fails = true;
    clock.schedule("iptables to work again", random.integer(1000, 200_000), () => {
      node.firewall.fails = false;
    });
  },
  /** Limits are removed while podwright is down; pods may exceed them when it is back. */
  loosenCgroups: ({ node, clock, strike }, random) => {
    strike("podwright killed");
    node.kill();
    node.cgroups.loosen();
    if (random.chance(0.6)) {
      strike("pods use more than they may");
      node.cgroups.use("/kubepods", tooMuchBytes);
      clock.schedule("pods to use less", random.integer(1000, 300_000), () => node.cgroups.use("/kubepods", 0));
    }
    clock.schedule("podwright to be started again", random.integer(0, 5000), () => node.start());
  },
} satisfies Record<string, Act>;

export type MachineStepKind = keyof typeof machineActs;

/** Relative frequency of each kind. */
export const machineWeights: Readonly<Record<MachineStepKind, number>> = {
  shutDown: 4,
  cancelShutdown: 3,
  killInShutdown: 4,
  losePower: 1,
  flushTables: 3,
  failingTables: 1,
  loosenCgroups: 3,
};

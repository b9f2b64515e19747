import { AcceptedThresholds } from "../../eviction/accepted-thresholds.ts";
import { type EvictionConfig, EvictionManager } from "../../eviction/manager.ts";
import type { Gate } from "../gate.ts";
import { silentLog } from "../machine.ts";
import type { SimMachineResources } from "../machine-resources.ts";
import type { Surroundings } from "./build-kubelet.ts";

interface SimEvictionParts {
  readonly resources: SimMachineResources;
  readonly gate: Gate;
  readonly rootDirectory: string;
}

/** The eviction manager of a simulated run. */
export function simEvictions(
  { record, ports: { clock, files } }: Pick<Surroundings, "record" | "ports">,
  { resources, gate, rootDirectory }: SimEvictionParts,
  config: EvictionConfig,
): EvictionManager {
  const machine = gate.through(resources, "machine", ["used", "left"]);
  const accepted = new AcceptedThresholds(
    { files, log: silentLog, directory: `${rootDirectory}/podwright` },
    config.thresholds,
    false,
  );
  const look = async (): ReturnType<SimMachineResources["look"]> => {
    const seen = await machine.look();
    // An observation takes time to arrive.
    await gate.waitForDisk();
    return seen;
  };
  const deps = { clock, journal: { record }, log: silentLog, look, usage: machine, accepted };
  return new EvictionManager(deps, config);
}

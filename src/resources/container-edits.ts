import type {
  CDIDeviceSchema,
  DeviceSchema,
  LinuxContainerResourcesSchema,
  MountSchema,
} from "../ports/gen/runtime/v1/api_pb.js";
import type { MessageInit } from "../ports/message-init.ts";

export type LinuxResources = MessageInit<typeof LinuxContainerResourcesSchema>;

/** Resource managers' additions to a container's spec (upstream: RunContainerOptions, LinuxContainerResources). */
export interface ContainerEdits {
  /**
   * cpusetCpus, cpusetMems, hugepageLimits, unified …: at most one manager may set each field, page size and unified
   * key.
   */
  readonly resources?: LinuxResources;
  readonly devices?: readonly MessageInit<typeof DeviceSchema>[];
  readonly cdiDevices?: readonly MessageInit<typeof CDIDeviceSchema>[];
  /** Mounted before the pod's volumes. */
  readonly mounts?: readonly MessageInit<typeof MountSchema>[];
  /** The container's own variables follow. */
  readonly environment?: readonly { readonly name: string; readonly value: Uint8Array }[];
  /** The kubelet's own annotations take precedence. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A manager's edits. */
export interface MadeEdits {
  readonly manager: string;
  readonly edits: ContainerEdits;
}

/** Two managers set the same value of a container: applying either would break the other's promise. */
export class EditConflictError extends Error {
  constructor(what: string, managers: readonly [string, string]) {
    super(`resource managers ${managers.join(" and ")} both set ${what}`);
    this.name = "EditConflictError";
  }
}

/**
 * Merges the managers' edits. Pure.
 * @throws EditConflictError
 */
export function mergeEdits(all: readonly MadeEdits[]): ContainerEdits {
  const [first] = all;
  if (all.length <= 1) return first?.edits ?? {};
  refuseConflicts(all);
  const each = <T>(list: (edits: ContainerEdits) => readonly T[] | undefined): T[] =>
    all.flatMap(({ edits }) => list(edits) ?? []);
  const resources = all.map(({ edits }) => edits.resources ?? {});
  return {
    resources: {
      ...together<LinuxResources>(resources, {}),
      unified: together<Record<string, string>>(
        resources.map(({ unified = {} }) => unified),
        {},
      ),
      hugepageLimits: resources.flatMap(({ hugepageLimits }) => hugepageLimits ?? []),
    },
    devices: each(({ devices }) => devices),
    cdiDevices: each(({ cdiDevices }) => cdiDevices),
    mounts: each(({ mounts }) => mounts),
    environment: each(({ environment }) => environment),
    annotations: together<Readonly<Record<string, string>>>(
      all.map(({ edits }) => edits.annotations ?? {}),
      {},
    ),
  };
}

function together<T extends object>(parts: readonly T[], none: T): T {
  return parts.reduce((all, part) => Object.assign(all, part), { ...none });
}

function refuseConflicts(all: readonly MadeEdits[]): void {
  const owners = new Map<string, string>();
  for (const { manager, edits } of all) {
    for (const what of thingsSet(edits)) {
      const owner = owners.get(what);
      if (owner !== undefined && owner !== manager) throw new EditConflictError(what, [owner, manager]);
      owners.set(what, manager);
    }
  }
}

/** Descriptions of the things that can have only one value. */
function thingsSet({ resources = {}, ...edits }: ContainerEdits): string[] {
  const { unified = {}, hugepageLimits = [], ...fields } = resources;
  return [
    ...Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name])),
    ...Object.keys(unified).map((key) => `cgroup value ${key}`),
    ...hugepageLimits.map(({ pageSize }) => `the limit of huge pages of ${pageSize}`),
    ...(edits.devices ?? []).map(({ containerPath }) => `device ${containerPath}`),
    ...(edits.cdiDevices ?? []).map(({ name }) => `CDI device ${name}`),
    ...(edits.mounts ?? []).map(({ containerPath }) => `a mount at ${containerPath}`),
    ...(edits.environment ?? []).map(({ name }) => `variable ${name}`),
    ...Object.keys(edits.annotations ?? {}).map((name) => `annotation ${name}`),
  ];
}

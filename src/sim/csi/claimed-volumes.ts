import type { Fields } from "../api-server/values.ts";
import type { DriverKind } from "./driver-kind.ts";

/** The drivers of a simulated cluster: one stages its volumes, one does not, one has inline volumes. */
export const stagingDriver: DriverKind = { name: "staging.example.com", stages: true };
export const plainDriver: DriverKind = { name: "plain.example.com", stages: false };
export const inlineDriver: DriverKind = { name: "inline.example.com", stages: false };
export const driverKinds: readonly DriverKind[] = [stagingDriver, plainDriver, inlineDriver];

/** A claim and its volume. */
export interface ClaimedVolume {
  readonly claim: string;
  /** The name of the PersistentVolume. */
  readonly name: string;
  readonly driver: string;
  readonly handle: string;
  /** A controller attaches it to nodes. */
  readonly isAttached: boolean;
  /** Its claim is bound late. */
  readonly isLate: boolean;
  /** Containers get it as a device. */
  readonly isBlock: boolean;
  /** One pod at a time has it (ReadWriteOncePod). */
  readonly isExclusive: boolean;
  /** The node's device that it is, without a driver. */
  readonly device?: string;
}

function claimed(number: number, { name: driver }: DriverKind, isLate = false): ClaimedVolume {
  const isAttached = driver === stagingDriver.name;
  const names = { claim: `claim-${number}`, name: `pv-${number}`, driver, handle: `handle-${number}` };
  return { ...names, isAttached, isLate, isBlock: false, isExclusive: false };
}

export const claimedVolumes: readonly ClaimedVolume[] = [
  claimed(1, stagingDriver),
  claimed(2, stagingDriver),
  claimed(3, plainDriver),
  claimed(4, stagingDriver, true),
];

/** The node's devices: one gets a file system, one is used as it is. */
export const [diskDevice, rawDevice] = ["/dev/disk-1", "/dev/disk-2"] as const;
const withoutDriver: DriverKind = { name: "", stages: false };

/** Volumes of some lives only: devices, with and without a driver, and volumes that one pod at a time may use. */
export const deviceVolumes: readonly ClaimedVolume[] = [
  { ...claimed(5, stagingDriver), isBlock: true },
  { ...claimed(6, plainDriver), isBlock: true },
  { ...claimed(7, stagingDriver), isExclusive: true },
  { ...claimed(8, withoutDriver), device: diskDevice },
  { ...claimed(9, withoutDriver), device: rawDevice, isBlock: true },
];

function driverObject({ name }: DriverKind, spec: Fields): Fields {
  const usual = { attachRequired: false, podInfoOnMount: false, fsGroupPolicy: "File", requiresRepublish: false };
  const volumeLifecycleModes = ["Persistent"];
  const kind = { apiVersion: "storage.k8s.io/v1", kind: "CSIDriver" };
  return { ...kind, metadata: { name }, spec: { ...usual, volumeLifecycleModes, ...spec } };
}

/** The drivers' CSIDriver objects. */
export const driverObjects: readonly Fields[] = [
  driverObject(stagingDriver, { attachRequired: true }),
  driverObject(plainDriver, { podInfoOnMount: true }),
  driverObject(inlineDriver, {
    ...{ requiresRepublish: true, podInfoOnMount: true, volumeLifecycleModes: ["Ephemeral"] },
    tokenRequests: [{ audience: "vault", expirationSeconds: 600 }],
  }),
];

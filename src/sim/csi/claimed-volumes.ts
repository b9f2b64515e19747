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
}

function claimed(number: number, { name: driver }: DriverKind, isLate = false): ClaimedVolume {
  const isAttached = driver === stagingDriver.name;
  return { claim: `claim-${number}`, name: `pv-${number}`, driver, handle: `handle-${number}`, isAttached, isLate };
}

export const claimedVolumes: readonly ClaimedVolume[] = [
  claimed(1, stagingDriver),
  claimed(2, stagingDriver),
  claimed(3, plainDriver),
  claimed(4, stagingDriver, true),
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

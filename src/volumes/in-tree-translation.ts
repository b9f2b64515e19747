import { PersistentVolume as Source, type PersistentVolume } from "../api/persistent-volume.ts";
import type { Volume } from "../api/volume.ts";
import { trimmed } from "../base/trimmed.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { withTopology } from "./volume-topology.ts";

type Spec = PersistentVolume["spec"];
type CsiSource = NonNullable<Spec["csi"]>;
type Translation = (volume: PersistentVolume) => PersistentVolume;

/** By the sources of plugins that were removed from Kubernetes: the translation to the CSI driver. */
const translations = {
  awsElasticBlockStore: translateEbs,
  azureDisk: translateAzureDisk,
  azureFile: translateAzureFile,
  cinder: translateCinder,
  gcePersistentDisk: translateGcePd,
  portworxVolume: translatePortworx,
  vsphereVolume: translateVsphere,
} as const satisfies Partial<Record<keyof Spec, Translation>>;

type TranslatedSource = keyof typeof translations;
const sources = Object.keys(translations) as readonly TranslatedSource[];

/**
 * The CSI PersistentVolume for one of a removed in-tree plugin (upstream's csi-translation-lib); undefined: it is not
 * such a volume. Pure.
 * @throws VolumeError
 */
export function translatedVolume(volume: PersistentVolume): PersistentVolume | undefined {
  for (const [source, translate] of Object.entries(translations)) {
    if (Object.hasOwn(volume.spec, source)) return translate(volume);
  }
  return undefined;
}

/** Whether an inline volume belongs to a removed in-tree plugin with a CSI driver. Pure. */
export function isTranslated(volume: Volume): boolean {
  return sources.some((source) => volume[source] !== undefined);
}

/**
 * {@link translatedVolume} for an inline volume. Pure.
 * @param namespace the pod's, for the volume's secrets
 * @throws VolumeError
 */
export function translatedInline(volume: Volume, namespace: string): PersistentVolume | undefined {
  const source = sources.find((each) => volume[each] !== undefined);
  if (source === undefined) return undefined;
  const given: Readonly<Record<string, unknown>> = {
    ...volume[source],
    ...(source === "azureFile" && { secretNamespace: namespace }),
  };
  const parsed = Source.safeParse({ metadata: { name: volume.name }, spec: { [source]: given } });
  if (!parsed.success) throw refused(`${source} of volume ${volume.name} is not valid`);
  const { metadata, spec } = translations[source](parsed.data);
  const { driver = "", volumeHandle = "" } = spec.csi ?? {};
  const { gcePersistentDisk, azureDisk } = parsed.data.spec;
  const own = gcePersistentDisk?.pdName ?? azureDisk?.diskName ?? volumeHandle;
  const name = source === "azureFile" ? volumeHandle : `${driver}-${own}`;
  // Its parts come from the pod's author, and it becomes a directory name.
  return {
    metadata: { ...metadata, name: name.replaceAll("/", "~") },
    spec: { ...spec, accessModes: [inlineAccess(source, given["readOnly"] === true)], volumeMode: "Filesystem" },
  };
}

function inlineAccess(source: TranslatedSource, readOnly: boolean): string {
  if (source === "azureFile") return "ReadWriteMany";
  const mayBeShared = source === "gcePersistentDisk" || source === "portworxVolume";
  return readOnly && mayBeShared ? "ReadOnlyMany" : "ReadWriteOnce";
}

function refused(why: string): VolumeError {
  return new VolumeError(`failed to translate in-tree pv to CSI: ${why}`);
}

function withCsi(volume: PersistentVolume, source: keyof typeof translations, csi: CsiSource): PersistentVolume {
  const { [source]: _source, ...spec } = volume.spec;
  return { ...volume, spec: { ...spec, csi } };
}

function translateEbs(volume: PersistentVolume): PersistentVolume {
  const { volumeID = "", fsType, partition = 0, readOnly } = volume.spec.awsElasticBlockStore ?? {};
  const csi = {
    driver: "ebs.csi.aws.com",
    volumeHandle: ebsVolume(volumeID),
    readOnly,
    fsType,
    volumeAttributes: { partition: String(partition) },
  };
  return withCsi(withTopology(volume, { zone: "topology.ebs.csi.aws.com/zone" }), "awsElasticBlockStore", csi);
}

/** `aws://<zone>/vol-…`, `aws:///vol-…`, or the driver's own ID. */
function ebsVolume(id: string): string {
  if (!id.startsWith("aws://")) return id;
  const path = id.slice("aws://".length);
  const found = trimmed(path.slice(path.indexOf("/")), "/");
  if (path.includes("/") && /^vol-[^/]*$/u.test(found)) return found;
  throw refused(`failed to translate Kubernetes ID to EBS Volume ID invalid format for AWS volume (${id})`);
}

function translateGcePd(volume: PersistentVolume): PersistentVolume {
  const { pdName = "", fsType, partition = 0, readOnly } = volume.spec.gcePersistentDisk ?? {};
  const labels = volume.metadata.labels ?? {};
  const zones = (labels["failure-domain.beta.kubernetes.io/zone"] || labels["topology.kubernetes.io/zone"] || "").split(
    "__",
  );
  const [zone = ""] = zones;
  const place = zones.length > 1 ? `regions/${gceRegion(zones)}` : `zones/${zone === "" ? unspecified : zone}`;
  const csi = {
    driver: "pd.csi.storage.gke.io",
    volumeHandle: `projects/${unspecified}/${place}/disks/${pdName}`,
    readOnly,
    fsType,
    volumeAttributes: { partition: partition === 0 ? "" : String(partition) },
  };
  const moved = withTopology(volume, { zone: "topology.gke.io/zone" });
  const accessModes = volume.spec.accessModes && gceAccessModes(volume.spec.accessModes);
  return withCsi({ ...moved, spec: { ...moved.spec, accessModes } }, "gcePersistentDisk", csi);
}

const unspecified = "UNSPECIFIED";

function gceRegion(zones: readonly string[]): string {
  const regions = new Set<string>();
  for (const zone of zones) {
    const parts = zone.split("-");
    if (parts.length !== 3) {
      const expected = "zone in unexpected format, expected: {locale}-{region}-{zone}";
      throw refused(`failed to get region from zones: ${expected}, got: ${zone}`);
    }
    regions.add(parts.slice(0, 2).join("-"));
  }
  const [region = "", ...others] = regions;
  if (others.length === 0) return region;
  throw refused(
    `failed to get region from zones: multiple or no regions gotten from zones, got: ${[...regions].join(" ")}`,
  );
}

/** The in-tree plugin treated ReadWriteMany as ReadWriteOnce. */
function gceAccessModes(modes: readonly string[]): string[] {
  const isReadOnly = modes.length > 0 && modes.every((mode) => mode === "ReadOnlyMany");
  return [isReadOnly ? "ReadOnlyMany" : "ReadWriteOnce"];
}

function translateCinder(volume: PersistentVolume): PersistentVolume {
  const { volumeID: volumeHandle = "", fsType, readOnly } = volume.spec.cinder ?? {};
  const csi = { driver: "cinder.csi.openstack.org", volumeHandle, readOnly, fsType, volumeAttributes: {} };
  return withCsi(withTopology(volume, { zone: "topology.cinder.csi.openstack.org/zone" }), "cinder", csi);
}

function translateAzureDisk(volume: PersistentVolume): PersistentVolume {
  const { diskURI: volumeHandle = "", cachingMode, fsType, readOnly, kind } = volume.spec.azureDisk ?? {};
  if (kind !== undefined && kind.toLowerCase() !== "managed") {
    throw refused(`kind(${kind}) is not supported in csi migration`);
  }
  return withCsi(volume, "azureDisk", {
    driver: "disk.csi.azure.com",
    volumeHandle,
    readOnly,
    fsType,
    volumeAttributes: {
      kind: "Managed",
      ...(cachingMode !== undefined && { cachingmode: cachingMode }),
      ...(fsType !== undefined && { fstype: fsType }),
    },
  });
}

function translateAzureFile(volume: PersistentVolume): PersistentVolume {
  const { metadata, spec } = volume;
  const { secretName = "", shareName = "", secretNamespace, readOnly } = spec.azureFile ?? {};
  const namespace = secretNamespace ?? spec.claimRef?.namespace ?? "";
  if (namespace === "") throw refused("could not find a secret namespace in PersistentVolumeSource or ClaimRef");
  const account = /azure-storage-account-(.+)-secret/u.exec(secretName)?.[1] ?? secretName;
  const group = metadata.annotations?.["kubernetes.io/azure-file-resource-group"] ?? "";
  return withCsi(volume, "azureFile", {
    driver: "file.csi.azure.com",
    volumeHandle: [group, account, shareName, metadata.name, namespace].join("#"),
    readOnly,
    volumeAttributes: { sharename: shareName },
    nodeStageSecretRef: { name: secretName, namespace },
  });
}

function translatePortworx(volume: PersistentVolume): PersistentVolume {
  const { volumeID: volumeHandle = "", fsType } = volume.spec.portworxVolume ?? {};
  const { "openstorage.io/auth-secret-name": name, "openstorage.io/auth-secret-namespace": namespace } =
    volume.metadata.annotations ?? {};
  const secret = name === undefined || namespace === undefined ? undefined : { name, namespace };
  return withCsi(volume, "portworxVolume", {
    driver: "pxd.portworx.com",
    volumeHandle,
    fsType,
    volumeAttributes: {},
    nodeStageSecretRef: secret,
    nodePublishSecretRef: secret,
    nodeExpandSecretRef: secret,
  });
}

function translateVsphere(volume: PersistentVolume): PersistentVolume {
  const { volumePath: volumeHandle = "", fsType, storagePolicyName } = volume.spec.vsphereVolume ?? {};
  const topology = { zone: "topology.csi.vmware.com/zone", region: "topology.csi.vmware.com/region" };
  return withCsi(withTopology(volume, topology), "vsphereVolume", {
    driver: "csi.vsphere.vmware.com",
    volumeHandle,
    fsType,
    volumeAttributes: { ...(storagePolicyName && { storagepolicyname: storagePolicyName }) },
  });
}

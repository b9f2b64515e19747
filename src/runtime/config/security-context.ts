import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import {
  type LinuxContainerSecurityContextSchema,
  type SecurityProfileSchema,
  SecurityProfile_ProfileType as ProfileType,
  SupplementalGroupsPolicy,
} from "../../ports/gen/runtime/v1/api_pb.js";
import type { MessageInit } from "../../ports/message-init.ts";
import { plainCapability } from "./capabilities.ts";
import { ContainerConfigError } from "./container-config-error.ts";
import { namespaceOptions, type UserNamespace } from "./namespaces.ts";

/** The user that an image runs as (ImageStatus): one of the two; uid 0 when the image names none. */
export type ImageUser = { readonly uid: bigint } | { readonly username: string };

/** The node's settings for security contexts. */
export interface SecurityContextSettings {
  /** Where localhost seccomp profiles are: `<root>/seccomp`. */
  readonly seccompProfileRoot: string;
  /** KubeletConfiguration's seccompDefault: containers without a profile get the runtime's. */
  readonly seccompDefault: boolean;
  /** Paths of this machine to mask beside the usual ones: `/sys/devices/system/cpu/cpu<n>/thermal_throttle`. */
  readonly maskedPaths?: readonly string[];
  /** The pod's range of IDs; absent: the node's users. */
  readonly userNamespace?: UserNamespace;
  /** Groups that own files of the pod's volumes. */
  readonly volumeGroups?: readonly number[];
}

type SecurityContext = MessageInit<typeof LinuxContainerSecurityContextSchema>;
type SecurityProfile = MessageInit<typeof SecurityProfileSchema>;
interface ProfileSpec {
  readonly type: string;
  readonly localhostProfile?: string | undefined;
}

const maxUserId = 2n ** 31n - 1n;
/** Prefix of a container's name: its AppArmor profile, before Kubernetes had a field for that. */
export const appArmorAnnotationPrefix = "container.apparmor.security.beta.kubernetes.io/";

/** Machine information that containers must not read, or write. */
export const defaultMaskedPaths = [
  "/proc/asound",
  "/proc/acpi",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
];
export const defaultReadonlyPaths = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/**
 * The security context of a container: its own fields before the pod's, the image's user when neither names one.
 * @throws ContainerConfigError for what can't be honoured
 */
export function containerSecurityContext(
  pod: Pod,
  container: Container,
  imageUser: ImageUser,
  settings: SecurityContextSettings,
): SecurityContext {
  const own = container.securityContext ?? {};
  const shared = pod.spec.securityContext ?? {};
  const runAsGroup = own.runAsGroup ?? shared.runAsGroup;
  const seLinux = own.seLinuxOptions ?? shared.seLinuxOptions;
  const appArmor = appArmorProfile(pod, container);
  const unmasked = own.procMount === "Unmasked";
  verifyRunAsNonRoot(pod, container, imageUser);
  return {
    privileged: own.privileged ?? false,
    readonlyRootfs: own.readOnlyRootFilesystem ?? false,
    noNewPrivs: own.allowPrivilegeEscalation === false,
    namespaceOptions: namespaceOptions(pod, settings.userNamespace),
    ...effectiveUser(pod, container, imageUser),
    ...(runAsGroup !== undefined && { runAsGroup: { value: BigInt(runAsGroup) } }),
    ...(own.capabilities && {
      capabilities: {
        addCapabilities: (own.capabilities.add ?? []).map(plainCapability),
        dropCapabilities: (own.capabilities.drop ?? []).map(plainCapability),
      },
    }),
    ...(seLinux && { selinuxOptions: definedFields(seLinux) }),
    ...supplementalGroups(pod, settings.volumeGroups),
    maskedPaths: unmasked ? [] : [...defaultMaskedPaths, ...(settings.maskedPaths ?? [])],
    readonlyPaths: unmasked ? [] : defaultReadonlyPaths,
    seccomp: seccompProfile(own.seccompProfile ?? shared.seccompProfile, settings),
    // oxlint-disable-next-line typescript/no-deprecated -- runtimes of before CRI 1.23 know the old field only
    ...(appArmor && { apparmor: appArmor.profile, apparmorProfile: appArmor.legacyName }),
  };
}

/** Supplemental groups of every process of the pod: the fsGroup first, then those of the spec and of its volumes. */
export function supplementalGroups(
  pod: Pod,
  ofVolumes: readonly number[] = [],
): Pick<SecurityContext, "supplementalGroups" | "supplementalGroupsPolicy"> {
  const { fsGroup, supplementalGroups: added = [], supplementalGroupsPolicy } = pod.spec.securityContext ?? {};
  return {
    supplementalGroups: [
      ...(fsGroup === undefined ? [] : [fsGroup]),
      ...added,
      ...ofVolumes.filter((group) => !added.includes(group)),
    ].map(BigInt),
    supplementalGroupsPolicy:
      supplementalGroupsPolicy === "Strict" ? SupplementalGroupsPolicy.Strict : SupplementalGroupsPolicy.Merge,
  };
}

/** The object without undefined fields, which protobuf would take as set. */
export function definedFields<T extends object>(object: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}

function effectiveUser(
  pod: Pod,
  container: Container,
  imageUser: ImageUser,
): Pick<SecurityContext, "runAsUser" | "runAsUsername"> {
  const wanted = container.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser;
  if (wanted !== undefined) return { runAsUser: { value: BigInt(wanted) } };
  return "uid" in imageUser ? { runAsUser: { value: imageUser.uid } } : { runAsUsername: imageUser.username };
}

/** A named user may be root under another name: only a number can be verified. */
function verifyRunAsNonRoot(pod: Pod, container: Container, imageUser: ImageUser): void {
  const own = container.securityContext ?? {};
  const shared = pod.spec.securityContext ?? {};
  if ((own.runAsNonRoot ?? shared.runAsNonRoot) !== true) return;
  const { name, namespace, uid } = pod.metadata;
  const where = `(pod: "${name}_${namespace}(${uid})", container: ${container.name})`;
  const wanted = own.runAsUser ?? shared.runAsUser;
  if (wanted === 0) throw new ContainerConfigError(`container's runAsUser breaks non-root policy ${where}`);
  if (wanted !== undefined) return;
  if ("username" in imageUser) {
    throw new ContainerConfigError(
      `container has runAsNonRoot and image has non-numeric user (${imageUser.username}), cannot verify user is non-root ${where}`,
    );
  }
  if (imageUser.uid === 0n) {
    throw new ContainerConfigError(`container has runAsNonRoot and image will run as root ${where}`);
  }
  if (imageUser.uid < 0n || imageUser.uid > maxUserId) {
    throw new ContainerConfigError(
      `container has runAsNonRoot and image has an invalid user id (${imageUser.uid}). (Must be 1-(${maxUserId})) ${where}`,
    );
  }
}

function seccompProfile(spec: ProfileSpec | undefined, settings: SecurityContextSettings): SecurityProfile {
  if (spec === undefined) {
    return { profileType: settings.seccompDefault ? ProfileType.RuntimeDefault : ProfileType.Unconfined };
  }
  switch (spec.type) {
    case "RuntimeDefault":
      return { profileType: ProfileType.RuntimeDefault };
    case "Unconfined":
      return { profileType: ProfileType.Unconfined };
    case "Localhost": {
      if (!spec.localhostProfile) {
        throw new ContainerConfigError("localhostProfile must be set if seccompProfile type is Localhost.");
      }
      if (spec.localhostProfile.split("/").includes("..")) {
        throw new ContainerConfigError(
          `seccomp profile ${JSON.stringify(spec.localhostProfile)} leaves the profile directory`,
        );
      }
      const path = `${settings.seccompProfileRoot}/${spec.localhostProfile}`.replaceAll(/\/+/g, "/");
      return { profileType: ProfileType.Localhost, localhostRef: path };
    }
    default:
      throw new ContainerConfigError(`unknown seccomp profile type: ${JSON.stringify(spec.type)}`);
  }
}

/** The container's field, then the old annotation (static pods may still have it), then the pod's field. */
export function appArmorSpec(pod: Pod, container: Container): ProfileSpec | undefined {
  const annotation = pod.metadata.annotations?.[appArmorAnnotationPrefix + container.name];
  return (
    container.securityContext?.appArmorProfile ??
    appArmorOfAnnotation(annotation) ??
    pod.spec.securityContext?.appArmorProfile
  );
}

function appArmorProfile(
  pod: Pod,
  container: Container,
): { readonly profile: SecurityProfile; readonly legacyName: string } | undefined {
  const spec = appArmorSpec(pod, container);
  switch (spec?.type) {
    case undefined:
      return undefined;
    case "RuntimeDefault":
      return { profile: { profileType: ProfileType.RuntimeDefault }, legacyName: "runtime/default" };
    case "Unconfined":
      return { profile: { profileType: ProfileType.Unconfined }, legacyName: "unconfined" };
    case "Localhost":
      if (!spec.localhostProfile) throw new ContainerConfigError("missing localhost apparmor profile name");
      return {
        profile: { profileType: ProfileType.Localhost, localhostRef: spec.localhostProfile },
        legacyName: `localhost/${spec.localhostProfile}`,
      };
    default:
      throw new ContainerConfigError(`unknown apparmor profile type: ${JSON.stringify(spec?.type)}`);
  }
}

function appArmorOfAnnotation(annotation: string | undefined): ProfileSpec | undefined {
  if (annotation === "runtime/default") return { type: "RuntimeDefault" };
  if (annotation === "unconfined") return { type: "Unconfined" };
  const localhost = "localhost/";
  return annotation?.startsWith(localhost)
    ? { type: "Localhost", localhostProfile: annotation.slice(localhost.length) }
    : undefined;
}

import { imageErrorReasons } from "../images/image-error.ts";
import type { JournalEntry, PodRef } from "../journal/entry.ts";
import { rejected } from "../pods/rejection.ts";

/** What of a journal entry is told as an Event. */
export interface NodeEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  /** Undefined: it is about the node. */
  readonly pod: PodRef | undefined;
  /** Name of the container it is about. */
  readonly container: string | undefined;
}

type Told = Pick<NodeEvent, "type" | "reason" | "message">;

/** In upstream's own words, which don't all begin with a capital. */
const normal = (reason: string, message: string): Told => ({ type: "Normal", reason, message });
const warning = (reason: string, message: string): Told => ({ type: "Warning", reason, message });

/** Events of images that tell of something wrong (kubelet/events/event.go). */
const imageWarnings: ReadonlySet<string> = new Set(["Failed", "ErrImageNeverPull", "InspectFailed"]);
const imageReasons: ReadonlySet<string> = new Set(imageErrorReasons);
/** Observations and notes that are events by their own name. */
const warnings: ReadonlySet<string> = new Set([
  "Unhealthy",
  "ProbeWarning",
  "FailedPreStopHook",
  "LifecycleHTTPFallback",
  "FailedValidation",
  "FailedToRetrieveImagePullSecret",
  "Preempting",
  "FailedSync",
  "ResizeError",
  "ResizeDeferred",
  "ResizeInfeasible",
  "PossibleMemoryBackedVolumesOnDisk",
  "CertificateNotIssued",
  "CloudMetadataFailed",
  "CgroupV1",
  "CheckLimitsForResolvConf",
  "ContainerGCFailed",
  "Rebooted",
  "FailedNodeAllocatableEnforcement",
  "CredentialProviderFailed",
  "DNSConfigForming",
  "MissingClusterDNS",
  "ExceededGracePeriod",
  "HostIPsIPFamilyMismatch",
  "OOMKilling",
]);
/** Entries that say it in upstream's own words, which begin as they begin. */
const verbatim: ReadonlySet<string> = new Set([
  "CgroupV1",
  "CheckLimitsForResolvConf",
  "LifecycleHTTPFallback",
  "MissingClusterDNS",
]);
const normals: ReadonlySet<string> = new Set([
  "AdmissionWaits",
  "ResizeStarted",
  "ResizeCompleted",
  "NodeAllocatableEnforced",
  "NodeReady",
  "NodeNotReady",
  "NodeSchedulable",
  "NodeNotSchedulable",
  "NodeHasSufficientMemory",
  "NodeHasInsufficientMemory",
  "NodeHasNoDiskPressure",
  "NodeHasDiskPressure",
  "NodeHasSufficientPID",
  "NodeHasInsufficientPID",
]);

/**
 * The Events that an entry is for people at the API server, with upstream's reasons and words. An image that a container
 * does not get is told twice, as upstream does: by the image's manager, and as what keeps the container from starting. Pure.
 */
export function eventsOf(entry: JournalEntry): readonly NodeEvent[] {
  const { pod, container } = entry;
  const events = [toldOf(entry), withoutImage(entry)].flatMap((told) =>
    told === undefined ? [] : [{ ...told, pod, container }],
  );
  const ofNode = entry.data?.["nodeMessage"];
  if (typeof ofNode !== "string") return events;
  return [{ ...warning(entry.what, ofNode), pod: undefined, container: undefined }, ...events];
}

function withoutImage({ kind, what, data }: JournalEntry): Told | undefined {
  const failed = kind === "outcome" && what === "PullImage" ? data?.["reason"] : undefined;
  const reason = kind === "decision" ? what : failed;
  return typeof reason === "string" && imageReasons.has(reason) ? warning("Failed", `Error: ${reason}`) : undefined;
}

function toldOf(entry: JournalEntry): Told | undefined {
  const { kind, what, message, data } = entry;
  const text = verbatim.has(what) ? message : capitalised(message);
  const image = data?.["event"];
  if (typeof image === "string") return imageWarnings.has(image) ? warning(image, text) : normal(image, text);
  const said = eventMessageOf(entry) ?? text;
  if (warnings.has(what)) return warning(what, said);
  if (normals.has(what)) return normal(what, said);
  // Every kill says why.
  if (what === "Killing") return normal(what, `${said}: ${entry.cause?.message ?? ""}`);
  switch (kind) {
    case "observation":
      return ofObservation(entry);
    case "action":
      return ofAction(entry);
    case "outcome":
      return ofOutcome(entry);
    case "decision":
      return ofDecision(entry);
    default:
      return undefined;
  }
}

function ofObservation({ what, message }: JournalEntry): Told | undefined {
  switch (what) {
    case "ContainerConfigError":
      return warning("Failed", `Error: ${message}`);
    case "SandboxConfigError":
      return sandboxFailed(message);
    case "FailedPodSandBoxStatus":
      return warning(what, `Unable to get pod sandbox status: ${message}`);
    case "FailedMakePodDataDirectories":
      return warning("Failed", `error making pod data directories: ${message}`);
    case "FailedCreatePodContainer":
      return warning(what, `unable to ensure pod container exists: ${message}`);
    case "NetworkNotReady":
      return warning(what, message);
    case "FailedKillPod":
      return warning(what, `error killing pod: ${message}`);
    default:
      return undefined;
  }
}

/** What the Event says where that is not what the entry says. */
function eventMessageOf({ data }: JournalEntry): string | undefined {
  return typeof data?.["eventMessage"] === "string" ? data["eventMessage"] : undefined;
}

function ofAction({ what, data }: JournalEntry): Told | undefined {
  if (what !== "RunPodSandbox" || data?.["attempt"] === 0) return undefined;
  return normal("SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
}

function ofOutcome({ what, result, message }: JournalEntry): Told | undefined {
  if (result === "done") {
    if (what === "CreateContainer") return normal("Created", "Container created");
    return what === "StartContainer" ? normal("Started", "Container started") : undefined;
  }
  if (result !== "failed") return undefined;
  switch (what) {
    case "CreateContainer":
    case "StartContainer":
      return warning("Failed", `Error: ${message}`);
    case "RunPodSandbox":
      return sandboxFailed(message);
    case "MountVolume":
    case "UpdateVolume":
      return warning("FailedMount", capitalised(message));
    case "PostStartHook":
      return warning("FailedPostStartHook", `PostStartHook failed: ${message}`);
    default:
      return undefined;
  }
}

function sandboxFailed(message: string): Told {
  return warning("FailedCreatePodSandBox", `Failed to create pod sandbox: ${message}`);
}

function ofDecision({ what, message, pod, container = "", cause }: JournalEntry): Told | undefined {
  if (message.startsWith(rejected)) return warning(what, message.slice(rejected.length));
  if (what === "BackOff" && pod !== undefined) {
    const name = `${pod.name}_${pod.namespace}(${pod.uid})`;
    return warning("BackOff", `Back-off restarting failed container ${container} in pod ${name}`);
  }
  if (what !== "PodTerminating" || cause?.code !== "DeadlineExceeded") return undefined;
  return normal("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

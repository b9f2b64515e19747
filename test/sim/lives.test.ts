import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { tellFailure } from "../../scripts/sim-failure.ts";
import { SimPool } from "../../scripts/sim-pool.ts";
import type { Report } from "../../scripts/sim-worker.ts";
import { runLife } from "../../src/sim/life/life.ts";
import { facts, terms } from "../../src/journal/vocabulary.ts";
import { stepKinds } from "../../src/sim/life/steps.ts";

const lives = 400;
/** So many of them are played once more, in another order and so in other threads and after other lives. */
const twice = 80;
/** More failures than these are only named. */
const toldFailures = 2;

/** Names that no life produces: they belong outside of the simulated kubelet, or are too rare. */
const notPlayed: ReadonlySet<string> = new Set(
  [
    "AlreadyMountedVolume AppArmor AskCredentialProvider CertificateExpired CertificateExpires CertificateIsInitial",
    "ClaimRemovalRequested KubeletPlaceLeft KubeletPlaceTaken",
    "CertificateNamesDiffer CertificateNotIssued CgroupV1 CheckLimitsForResolvConf CloudMetadataAnswers",
    "CloudMetadataFailed ConditionsChanged ContainerGCFailed CredentialProviderFailed DNSConfigForming",
    "DeleteMirrorPod DeleteResourceSlices DriverStopsFirst DriverWaits DuplicateManifest",
    "EvictionByChange EvictionsConfirmed ExceededGracePeriod",
    "FailedCreatePodContainer FailedToRetrieveImagePullSecret FailedValidation",
    "FileSystemResizeFailed HostIPsIPFamilyMismatch InvalidDiskCapacity InvalidImageName InvariantBroken",
    "JournalGap JournalProblem JournalWritable LifecycleHTTPFallback LivenessProbeSucceeded ManifestMended",
    "ManifestRejected ManifestReturned ManifestWarning ManifestWarningOver MatchingSandbox MirrorPodDeleted",
    "MirrorPodOrphaned MirrorPodOutdated MirrorPodOver MissingCause NameTaken NetworkNotReady NetworkReady",
    "NoCertificate NodeAffinity NodeDeleted NodeHasDiskPressure NodeHasInsufficientMemory",
    "NodeHasInsufficientPID NodeName NodeNotSchedulable NodePressureChanged NodeSchedulable",
    "OutOfephemeral-storage OutOfmemory OutOfpods PodAdopted PodFeatureUnsupported PodOSNotSupported",
    "PodOSSelectorNodeLabelDoesNotMatch PodsRemoved",
    "PossibleMemoryBackedVolumesOnDisk ProbeLate ProbeWarning",
    "Rebooted RemoveCgroup RemovePodLogs ReopenLog RequestCertificate ResizeInfeasible ResizeRetry ResourcesDiffer",
    "RoomMade SandboxNetworkChanged SandboxSurplus SandboxUsersDiffer",
    "StartupProbeFailed StatusDiffers StatusRefused StopRequested",
    "SupplementalGroupsPolicyNotSupported SysctlForbidden SystemOOM TaintToleration UnknownCause",
    "UnknownEntry VolumeAttachmentLimitExceeded VolumePermissionChangeInProgress",
    "VolumeConditionAbnormal VolumeConditionOver ",
    "VolumeResizeFailed VolumeWarning VolumeWarningOver",
  ].flatMap((line) => line.split(" ")),
);

/** Entries of the journal, one a line; the place of the first that differs, with both. */
async function firstDifference(seed: number): Promise<string> {
  const [first, second] = [(await runLife(seed)).entries, (await runLife(seed)).entries];
  const [lines, others] = [first.map((entry) => JSON.stringify(entry)), second.map((entry) => JSON.stringify(entry))];
  const index = lines.findIndex((line, place) => line !== others[place]);
  if (index < 0 && lines.length === others.length) return `seed ${seed}: not when it is played alone`;
  const place = index < 0 ? lines.length : index;
  return `seed ${seed}, entry ${place + 1}:\n  ${lines[place]}\n  ${others[place]}`;
}

describe("random lives of a node in the simulator", () => {
  test(`break no rule, ${lives} of them; each seed gives the same journal again, byte for byte`, async () => {
    await using pool = new SimPool();
    const seeds = Array.from({ length: lives }, (_, index) => index + 1);
    const again = seeds.slice(0, twice).toReversed();
    const [reports, others] = await Promise.all([
      Promise.all(seeds.map((seed) => pool.play(seed))),
      Promise.all(again.map((seed) => pool.play(seed))),
    ]);
    const failed = reports.filter(({ problems }) => problems.length > 0);
    const told: string[] = [];
    for (const report of failed.slice(0, toldFailures)) told.push(await tellFailure(pool, report));
    assert.deepEqual(failed.map(({ seed }) => seed).join(" "), "", told.join("\n\n"));

    const digests = new Map(reports.map(({ seed, digest }) => [seed, digest]));
    const different = others.filter(({ seed, digest }) => digests.get(seed) !== digest).map(({ seed }) => seed);
    const [first] = different;
    assert.equal(different.join(" "), "", first === undefined ? "" : await firstDifference(first));

    const taken = new Set(reports.flatMap(({ coverage }: Report) => [...coverage.steps.keys()]));
    const missing = stepKinds.filter((kind) => !taken.has(kind));
    assert.deepEqual(missing, [], "every kind of step is taken");

    const names = new Set(reports.flatMap(({ coverage }: Report) => [...coverage.names.keys()]));
    const promised = [...Object.keys(terms), ...Object.keys(facts)].filter((name) => !notPlayed.has(name));
    const untold = promised.filter((name) => !names.has(name));
    assert.deepEqual(untold, [], "every name of the vocabulary is told that a simulated node can tell");
  });
});

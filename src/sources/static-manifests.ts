import { decodeManifests } from "./decode.ts";
import { ManifestError } from "../yaml/manifest-error.ts";
import { furtherErrors, prepareManifests } from "./prepare.ts";
import type { SourceDependencies, SourcedPod } from "./source.ts";
import { staticPod, validateStaticPod, type StaticSource } from "./static-pod.ts";

/** What one file or URL gave. */
export interface StaticManifests {
  readonly pods: readonly SourcedPod[];
  readonly errors: readonly ManifestError[];
}

/** The static pods that a text stands for, and what is wrong with the rest of it. */
export function staticPodsOf(
  bytes: Uint8Array,
  place: string,
  source: StaticSource,
  nodeName: string,
): StaticManifests {
  const decoded = decodeManifests(bytes, place);
  const prepared = prepareManifests(decoded.objects);
  const errors = [...decoded.errors, ...furtherErrors(decoded), ...prepared.errors];
  for (const { manifest, origin } of [...prepared.configMaps, ...prepared.secrets, ...prepared.storage]) {
    const detail = `Forbidden: static manifests hold pods only, not a ${manifest.kind}`;
    errors.push(ManifestError.at(origin, ["kind"], detail));
  }
  const pods: SourcedPod[] = [];
  for (const { manifest, origin, warnings } of prepared.pods) {
    const problems = validateStaticPod(manifest, nodeName);
    errors.push(...problems.map(({ path, detail }) => ManifestError.at(origin, path, detail)));
    if (problems.length > 0) continue;
    const pod = staticPod(manifest, nodeName, source);
    pods.push({ pod, place, warnings: warnings.map(({ message }) => message) });
  }
  return { pods, errors };
}

/** White space, comments and marks of documents. */
const emptyLine = /^\s*(?:(?:---|\.\.\.)\s*)?(?:#.*)?$/u;

/** True of a text without any document. An empty List is one: that says that there are to be no pods. */
export function isEmptyText(bytes: Uint8Array): boolean {
  return new TextDecoder()
    .decode(bytes)
    .split("\n")
    .every((line) => emptyLine.test(line));
}

/** Logs valid but unlikely values in manifests; the journal has them with each pod. */
export function tellWarnings(
  { log }: Pick<SourceDependencies, "log">,
  place: string,
  pods: readonly SourcedPod[],
): void {
  for (const warning of pods.flatMap((pod) => pod.warnings ?? [])) {
    log.warn("manifest has warnings", { place, warning });
  }
}

/** One thing that is wrong with a place that manifests come from. */
export type ManifestProblem = Pick<ManifestError, "message"> & Partial<Pick<ManifestError, "object">>;

/** A manifest that is not taken, and why. */
export interface RejectedManifest extends ManifestProblem {
  /** Path or URL. */
  readonly place: string;
}

/** Reports problems in the log and the journal, each once while it lasts, and their ends. */
export class ProblemReporter {
  readonly #deps: Pick<SourceDependencies, "journal" | "log">;
  /** What is reported and lasts, by the place it is about. */
  readonly #lasting = new Map<string, readonly ManifestProblem[]>();

  constructor(deps: Pick<SourceDependencies, "journal" | "log">) {
    this.#deps = deps;
  }

  /** All problems that last. */
  get rejected(): RejectedManifest[] {
    return [...this.#lasting].flatMap(([place, problems]) =>
      problems.map(({ message, object }) => ({ place, message, object })),
    );
  }

  /** Takes all that is wrong with a place now, in place of what was wrong before. */
  set(place: string, problems: readonly ManifestProblem[]): void {
    const before = new Set((this.#lasting.get(place) ?? []).map(({ message }) => message));
    for (const { message } of problems.filter((problem) => !before.has(problem.message))) {
      this.#deps.journal.record({ kind: "input", what: "ManifestRejected", message, data: { place } });
      this.#deps.log.warn("manifest rejected", { place, problem: message });
    }
    if (problems.length > 0) {
      this.#lasting.set(place, problems);
    } else if (this.#lasting.delete(place)) {
      this.#deps.journal.record({
        kind: "input",
        what: "ManifestMended",
        message: `${place} is valid again`,
        data: { place },
      });
      this.#deps.log.info("manifest is valid again", { place });
    }
  }

  /** Forgets places that are gone. */
  keepOnly(places: ReadonlySet<string>): void {
    for (const place of this.#lasting.keys()) if (!places.has(place)) this.#lasting.delete(place);
  }
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

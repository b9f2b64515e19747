/** The Kubernetes release that podwright implements; its own version is appended. */
export const kubernetesVersion = "v1.36.2";

/** The value of `--version`, like component-base's flag. */
export interface VersionFlag {
  /** Print the version as a line or in parts, and exit. */
  readonly print: "no" | "line" | "raw";
  /** The version to report instead of podwright's own. */
  readonly reported?: string;
}

const semantic = /^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/u;

/**
 * `true`, `raw`, or a version to report, which may differ from the release only in its suffix. An earlier flag's
 * version is kept.
 * @throws Error whose message completes `invalid argument "x" for "--version": `
 */
export function versionFlag(
  text: string,
  before: VersionFlag | undefined,
  parseBool: (text: string) => boolean,
): VersionFlag {
  const kept = before?.reported === undefined ? {} : { reported: before.reported };
  if (text === "raw") return { ...kept, print: "raw" };
  if (!text.startsWith("v")) return { ...kept, print: parseBool(text) ? "line" : "no" };
  const match = semantic.exec(text);
  if (match === null) throw new Error(`could not parse ${JSON.stringify(text)} as version`);
  if (`v${match.slice(1, 4).join(".")}` !== kubernetesVersion) {
    throw new Error(`version "${text}" must match major/minor/patch of default version "${kubernetesVersion}"`);
  }
  return { print: "no", reported: text };
}

/** The version that the Node and the metrics report. @param own podwright's */
export function reportedVersion(flag: VersionFlag | undefined, own: string): string {
  return flag?.reported ?? `${kubernetesVersion}+podwright.${own}`;
}

/**
 * The output of `--version`: kubeadm parses the line, `raw` is formatted like Go's structure. Undefined: not requested.
 */
export function versionText(flag: VersionFlag | undefined, platform: string): string | undefined {
  if (flag === undefined || flag.print === "no") return undefined;
  const version = flag.reported ?? kubernetesVersion;
  if (flag.print === "line") return `Kubernetes ${version}`;
  const [, major = "", minor = ""] = semantic.exec(version) ?? [];
  const fields = {
    ...{ Major: major, Minor: minor, EmulationMajor: "", EmulationMinor: "" },
    ...{ MinCompatibilityMajor: "", MinCompatibilityMinor: "", GitVersion: version, GitCommit: "", GitTreeState: "" },
    ...{ BuildDate: "", GoVersion: "", Compiler: "", Platform: platform },
  };
  const parts = Object.entries(fields).map(([name, value]) => `${name}:${JSON.stringify(value)}`);
  return `version.Info{${parts.join(", ")}}`;
}

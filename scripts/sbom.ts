/** The software bill of materials: SPDX 2.3, as JSON. */
import type { BundledPackage } from "./bundled-packages.ts";

/** The part of package-lock.json that is used. */
export interface LockFile {
  readonly packages: Readonly<
    Record<string, { readonly version?: string; readonly resolved?: string; readonly integrity?: string }>
  >;
}

export interface Release {
  readonly version: string;
  /** The sources' commit. */
  readonly commit: string;
  /** Seconds since the Unix epoch. */
  readonly epoch: number;
  readonly packages: readonly BundledPackage[];
  readonly lock: LockFile;
}

const nothingSaid = "NOASSERTION";

/**
 * Covers podwright, the npm packages in its bundle, and the Node.js of the Debian package.
 * @throws Error for a package version that is not in package-lock.json
 */
export function sbomOf({ version, commit, epoch, packages, lock }: Release): object {
  const node = lock.packages["node_modules/node"]?.version;
  if (node === undefined) throw new Error("package-lock.json has no node");
  const own = {
    ...spdxPackage("podwright", version, "Apache-2.0", nothingSaid),
    comment: "The bundle and its launcher; the Debian package contains Node.js, too.",
  };
  const nodeJs = spdxPackage("node", node, "MIT", `https://nodejs.org/dist/v${node}/`);
  const bundled = packages.map(({ name, version: packed, license }) => {
    const locked = lock.packages[`node_modules/${name}`];
    if (locked?.version !== packed) throw new Error(`package-lock.json does not have ${name} ${packed}`);
    const described = spdxPackage(name, packed, license.replace(/^\((.*)\)$/u, "$1"), locked.resolved ?? nothingSaid);
    const checksums = locked.integrity === undefined ? [] : [checksumOf(locked.integrity)];
    const externalRefs = [
      { referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator: purl(name, packed) },
    ];
    return { ...described, checksums, externalRefs };
  });
  const contained = [...bundled, nodeJs].map(({ SPDXID }) => {
    return { spdxElementId: own.SPDXID, relationshipType: "CONTAINS", relatedSpdxElement: SPDXID };
  });
  return {
    spdxVersion: "SPDX-2.3",
    dataLicense: "CC0-1.0",
    SPDXID: "SPDXRef-DOCUMENT",
    name: `podwright-${version}`,
    documentNamespace: `https://spdx.org/spdxdocs/podwright-${version}-${commit}`,
    creationInfo: {
      created: new Date(epoch * 1000).toISOString().replace(/\.\d+Z$/u, "Z"),
      creators: [`Tool: podwright-release-${version}`],
    },
    packages: [own, ...bundled, nodeJs],
    relationships: [
      { spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES", relatedSpdxElement: own.SPDXID },
      ...contained,
    ],
  };
}

function spdxPackage(
  name: string,
  version: string,
  license: string,
  from: string,
): {
  readonly name: string;
  readonly SPDXID: string;
  readonly versionInfo: string;
  readonly downloadLocation: string;
  readonly filesAnalyzed: false;
  readonly licenseConcluded: string;
  readonly licenseDeclared: string;
  readonly copyrightText: string;
} {
  return {
    name,
    SPDXID: `SPDXRef-${name.replaceAll(/[^A-Za-z0-9.]+/gu, "-").replace(/^-/u, "")}`,
    versionInfo: version,
    downloadLocation: from,
    filesAnalyzed: false,
    licenseConcluded: license,
    licenseDeclared: license,
    copyrightText: nothingSaid,
  };
}

function purl(name: string, version: string): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** Converts npm's `sha512-` and base64 to SPDX. */
function checksumOf(integrity: string): { readonly algorithm: string; readonly checksumValue: string } {
  const [algorithm = "", value = ""] = integrity.split("-", 2);
  return { algorithm: algorithm.toUpperCase(), checksumValue: Buffer.from(value, "base64").toString("hex") };
}

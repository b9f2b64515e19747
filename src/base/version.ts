import manifest from "../../package.json" with { type: "json" };

/** podwright's version, as its package has it. */
export const version: string = manifest.version;

/** Of the build; undefined when run from the sources. */
declare const PODWRIGHT_COMMIT: string | undefined;

/** The commit that the bundle was built from, `-dirty` if its sources differ; undefined: built or run outside of a checkout. */
// oxlint-disable-next-line unicorn/no-typeof-undefined -- there is no such name in the sources
export const commit: string | undefined = typeof PODWRIGHT_COMMIT === "undefined" ? undefined : PODWRIGHT_COMMIT;

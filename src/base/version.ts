import manifest from "../../package.json" with { type: "json" };

/** podwright's version, as its package has it. */
export const version: string = manifest.version;

import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { NodeFlagValues } from "./flags.ts";

const metadataServices = ["ec2", "gce", "azure"] as const;
const linkLocalUrl = "http://169.254.169.254";

/** Where the node's cloud properties come from; undefined: no cloud. */
export type CloudOptions =
  | { readonly kind: "external" }
  | { readonly kind: "metadata"; readonly service: (typeof metadataServices)[number]; readonly url: string }
  | undefined;

/** @throws PodwrightError (bad input) for invalid or conflicting values */
export function cloudOptions(flags: NodeFlagValues): CloudOptions {
  const { cloudProvider = "", cloudMetadata = "", cloudMetadataUrl = "" } = flags;
  if (cloudProvider !== "" && cloudProvider !== "external") {
    throw bad(
      `cloud provider ${JSON.stringify(cloudProvider)} was specified, but built-in cloud providers are disabled`,
      "set --cloud-provider=external and run a cloud controller manager, or set --cloud-metadata",
    );
  }
  const service = metadataServices.find((name) => name === cloudMetadata);
  if (cloudMetadata !== "" && service === undefined) {
    throw bad(`bad --cloud-metadata ${JSON.stringify(cloudMetadata)}`, `use one of ${metadataServices.join(", ")}`);
  }
  if (service === undefined) {
    if (cloudMetadataUrl !== "") {
      throw bad("--cloud-metadata-url requires --cloud-metadata", "set --cloud-metadata too");
    }
    return cloudProvider === "" ? undefined : { kind: "external" };
  }
  if (cloudProvider !== "") {
    throw bad(
      "--cloud-provider=external and --cloud-metadata conflict: both determine the node's addresses",
      "set only one of them",
    );
  }
  return { kind: "metadata", service, url: metadataUrl(cloudMetadataUrl || linkLocalUrl) };
}

function metadataUrl(text: string): string {
  const url = URL.parse(text);
  if (url?.protocol === "http:" && url.pathname === "/" && url.search === "" && url.username === "") return url.origin;
  throw bad(`bad --cloud-metadata-url ${JSON.stringify(text)}`, `use a URL without a path, like ${linkLocalUrl}`);
}

function bad(message: string, remedy: string): PodwrightError {
  return new PodwrightError(ExitCode.badInput, message, { remedy });
}

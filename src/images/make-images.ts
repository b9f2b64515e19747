import type { Logger } from "../ports/log.ts";
import type { Processes } from "../ports/processes.ts";
import type { PluginAnswer } from "./credential-plugin.ts";
import type { CredentialProvider } from "./credential-provider.ts";
import { CredentialProviders } from "./credential-providers.ts";
import { SharedWork } from "./shared-work.ts";
import { ImageAccess } from "./image-access.ts";
import { ImageLeases } from "./image-leases.ts";
import { ImageManager, type ImageManagerDependencies, type ImageManagerLimits } from "./image-manager.ts";
import { PullCredentials } from "./pull-credentials.ts";
import type { VerificationPolicy } from "./pull-record.ts";
import type { Files } from "../ports/files.ts";

/** How images are got. */
export interface ImageConfig extends ImageManagerLimits {
  readonly verification: VerificationPolicy;
  /** Paths of files that may hold the node's own credentials for registries, the first goes first. */
  readonly credentialFiles: readonly string[];
  /** Undefined: none. */
  readonly credentialPlugins?: CredentialPlugins | undefined;
}

/** Programs that are asked for credentials, and where they are. */
export interface CredentialPlugins {
  readonly providers: readonly CredentialProvider[];
  readonly directory: string;
  /** Of the files that name them: `sha256:…`. */
  readonly configHash: string;
}

export interface ImageDependencies extends Omit<ImageManagerDependencies, "credentials" | "access"> {
  readonly files: Files;
  readonly log: Logger;
  readonly processes: Pick<Processes, "run">;
}

/** What brings images to the node, and what whoever takes them away has to go by. */
export interface Images {
  readonly manager: ImageManager;
  readonly access: ImageAccess;
  readonly leases: ImageLeases;
}

/** An image manager with what it needs. */
export function makeImages(
  deps: ImageDependencies,
  { images, node }: { readonly images: ImageConfig; readonly node: { readonly rootDirectory: string } },
): Images {
  const own = { ...deps, log: deps.log.child({ room: "images" }) };
  const { credentialPlugins: plugins } = images;
  const shared = new SharedWork<PluginAnswer>();
  const providers = plugins && new CredentialProviders({ ...own, shared }, plugins.providers, plugins.directory);
  const credentials = new PullCredentials(own, images.credentialFiles, providers);
  const access = new ImageAccess(own, images.verification, node.rootDirectory);
  return { manager: new ImageManager({ ...own, credentials, access }, images), access, leases: new ImageLeases() };
}

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

export interface ImageConfig extends ImageManagerLimits {
  readonly verification: VerificationPolicy;
  /** Candidates for the node's own registry credentials, in order. */
  readonly credentialFiles: readonly string[];
  /** Undefined: none. */
  readonly credentialPlugins?: CredentialPlugins | undefined;
}

/** Credential provider plugins and their directory. */
export interface CredentialPlugins {
  readonly providers: readonly CredentialProvider[];
  readonly directory: string;
  /** Hash of their configuration files: `sha256:…`. */
  readonly configHash: string;
}

export interface ImageDependencies extends Omit<ImageManagerDependencies, "credentials" | "access"> {
  readonly files: Files;
  readonly log: Logger;
  readonly processes: Pick<Processes, "run">;
}

/** The image manager, and what removing images depends on. */
export interface Images {
  readonly manager: ImageManager;
  readonly access: ImageAccess;
  readonly leases: ImageLeases;
}

/** Builds an image manager with its parts. */
export function makeImages(
  deps: ImageDependencies,
  { images, node }: { readonly images: ImageConfig; readonly node: { readonly rootDirectory: string } },
): Images {
  const own = { ...deps, log: deps.log.child({ component: "images" }) };
  const { credentialPlugins: plugins } = images;
  const shared = new SharedWork<PluginAnswer>();
  const providers = plugins && new CredentialProviders({ ...own, shared }, plugins.providers, plugins.directory);
  const credentials = new PullCredentials(own, images.credentialFiles, providers);
  const access = new ImageAccess(own, images.verification, node.rootDirectory);
  return { manager: new ImageManager({ ...own, credentials, access }, images), access, leases: new ImageLeases() };
}

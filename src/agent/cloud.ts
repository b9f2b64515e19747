import { AzureMetadata } from "../cloud/azure.ts";
import type { CloudProvider } from "../cloud/cloud-provider.ts";
import { Ec2Metadata } from "../cloud/ec2.ts";
import { GceMetadata } from "../cloud/gce.ts";
import { Metadata } from "../cloud/metadata.ts";
import { type CloudOptions, cloudOptions } from "../config/cloud-options.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import { nodeIpsOf } from "../config/node-options.ts";
import type { ClusterSetup } from "../engine/cluster.ts";
import { systemMetadataService } from "../linux/http/metadata-service.ts";
import type { ExternalCloud } from "../node/node-status.ts";
import type { Clock } from "../ports/clock.ts";

const providers = { ec2: Ec2Metadata, gce: GceMetadata, azure: AzureMetadata };

/**
 * The cloud settings of the flags.
 * @throws PodwrightError (bad input) for inconsistent flags
 */
export function cloudSetup(
  flags: NodeFlagValues,
  clock: Clock,
): { readonly cloud: ClusterSetup["cloud"]; readonly externalCloud: ExternalCloud | undefined } {
  const options = cloudOptions(flags);
  const { given: nodeIps } = nodeIpsOf(flags.nodeIp);
  const provider = providerOf(options, clock);
  return {
    cloud: provider && { provider, nodeIps },
    externalCloud: options?.kind === "external" ? { nodeIps, saysAddresses: (flags.nodeIp ?? "") !== "" } : undefined,
  };
}

function providerOf(options: CloudOptions, clock: Clock): CloudProvider | undefined {
  if (options?.kind !== "metadata") return undefined;
  return new providers[options.service](new Metadata({ service: systemMetadataService, clock, url: options.url }));
}

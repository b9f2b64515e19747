import { checkedInstance, type CloudInstance, type CloudProvider, type NodeAddress } from "./cloud-provider.ts";
import type { Metadata } from "./metadata.ts";

const tokenHeader = "X-aws-ec2-metadata-token";
const tokenSeconds = "300";

/** Amazon EC2's instance metadata service, version 2: each poll has its own token. */
export class Ec2Metadata implements CloudProvider {
  readonly name = "ec2";
  readonly #metadata: Metadata;

  constructor(metadata: Metadata) {
    this.#metadata = metadata;
  }

  async instance(signal: AbortSignal): Promise<CloudInstance> {
    const question = {
      method: "PUT",
      path: "/latest/api/token",
      headers: { [`${tokenHeader}-ttl-seconds`]: tokenSeconds },
    } as const;
    const token = await this.#metadata.required(question, signal);
    const of = (name: string) => ({ path: `/latest/meta-data/${name}`, headers: { [tokenHeader]: token } });
    const optional = async (name: string): Promise<string> => (await this.#metadata.text(of(name), signal)) ?? "";
    const required = async (name: string): Promise<string> => await this.#metadata.required(of(name), signal);
    const [id, zone] = [await required("instance-id"), await required("placement/availability-zone")];
    const addresses: NodeAddress[] = [];
    const add = (type: NodeAddress["type"], texts: string): void => {
      // Lists have one item per line, host names also several with spaces.
      for (const address of texts.split(/\s+/u)) if (address !== "") addresses.push({ type, address });
    };
    const ipv6 = await optional("ipv6");
    // A subnet may be IPv6-only; without either the machine would be unreachable.
    add("InternalIP", await (ipv6 === "" ? required : optional)("local-ipv4"));
    add("InternalIP", ipv6);
    add("ExternalIP", await optional("public-ipv4"));
    add("InternalDNS", await optional("local-hostname"));
    add("ExternalDNS", await optional("public-hostname"));
    return checkedInstance({
      providerId: `aws:///${zone}/${id}`,
      instanceType: await optional("instance-type"),
      zone,
      // Older machines do not report it: a zone is its region and a letter.
      region: (await optional("placement/region")) || zone.replace(/[a-z]$/u, ""),
      addresses,
    });
  }
}

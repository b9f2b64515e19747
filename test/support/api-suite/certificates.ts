import { createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { bitString, der, derTag, integer, oid, pem, sequence } from "../../apiserver/der.ts";
import { type Fields, fieldsAt, itemsAt, textAt } from "../../apiserver/objects.ts";
import type { Steps } from "./scene.ts";

function signingRequest(commonName: string, organization: string): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const attribute = (type: string, value: string): Buffer =>
    der(derTag.set, sequence(oid(type), der(derTag.utf8String, Buffer.from(value))));
  const names = der(0x82, Buffer.from("node1"));
  const extension = sequence(oid("2.5.29.17"), der(derTag.octetString, sequence(names)));
  const attributes =
    commonName === "system:node:node1"
      ? der(0xa0, sequence(oid("1.2.840.113549.1.9.14"), der(derTag.set, sequence(extension))))
      : der(0xa0);
  const body = sequence(
    integer(Buffer.from([0])),
    sequence(attribute("2.5.4.10", organization), attribute("2.5.4.3", commonName)),
    createPublicKey(privateKey).export({ type: "spki", format: "der" }),
    attributes,
  );
  const signed = sequence(body, sequence(oid("1.2.840.10045.4.3.2")), bitString(sign("sha256", body, privateKey)));
  return Buffer.from(pem("CERTIFICATE REQUEST", signed)).toString("base64");
}

export async function playCertificates({ ask, step }: Steps): Promise<void> {
  const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const asked = (name: string, commonName: string, signer: string, usages: readonly string[]): Fields => ({
    ...{ apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: { name } },
    spec: {
      request: signingRequest(commonName, "system:nodes"),
      signerName: `kubernetes.io/${signer}`,
      usages,
      expirationSeconds: 3600,
    },
  });
  const client = ["digital signature", "client auth"];
  const serving = ["digital signature", "server auth"];
  const view = (body: Fields): Fields => ({
    spec: { ...fieldsAt(body, "spec"), request: null },
    conditions: itemsAt(body, "status.conditions").map(({ type, status, reason }) => ({
      type: type ?? null,
      status: status ?? null,
      reason: reason ?? null,
    })),
    issued: textAt(body, "status.certificate") !== "",
  });
  const until = ({ body }: { readonly body: Fields }): boolean => textAt(body, "status.certificate") !== "";
  await step(
    "a joiner asks for a certificate",
    "joiner",
    `POST ${path}`,
    asked("join", "system:node:node5", "kube-apiserver-client-kubelet", client),
    { view: (body) => ({ ...view(body), conditions: null, issued: null }) },
  );
  await step("a joiner gets its certificate", "joiner", `GET ${path}/join`, undefined, { view, until });
  await step(
    "a node asks for a serving certificate",
    "node1",
    `POST ${path}`,
    asked("serve", "system:node:node1", "kubelet-serving", serving),
    { view },
  );
  await step(
    "a node asks in another's name",
    "node1",
    `POST ${path}`,
    asked("wrong", "system:node:node2", "kubelet-serving", serving),
    { view },
  );
  await step("a node approves", "node1", `PUT ${path}/serve/approval`, {});
  const { body: request } = await ask("admin", `GET ${path}/serve`);
  const conditions = [{ type: "Approved", status: "True", reason: "ByHand", message: "m" }];
  await step(
    "a request is approved",
    "admin",
    `PUT ${path}/serve/approval`,
    { ...request, status: { conditions } },
    { view: (body) => ({ ...view(body), issued: null }) },
  );
  await step("a node gets its serving certificate", "node1", `GET ${path}/serve`, undefined, { view, until });
  await step("no request", "joiner", `GET ${path}/none`);
  await step("a request that is none", "joiner", `POST ${path}`, {
    ...asked("none", "x", "kubelet-serving", serving),
    spec: { request: "bm8=", signerName: "kubernetes.io/kubelet-serving", usages: serving },
  });
  await step("a joiner lists pods", "joiner", "GET /api/v1/pods");
}

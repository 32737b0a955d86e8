"""Runs the objects of `benchmaster fleet manifest` in a cluster made of processes: cluster.py PROGRAM OBJECTS.json RESULTS

Objects are created through Kubernetes' own Python client, by HTTP, at an API server that is just large enough: it refuses
fields that the API does not have, and references to objects that it was not given. A pod is a process with a root of its
own, which has what the pod's volumes say and the host's libraries; container images are not pulled. All pods share this
process's network, which should be a namespace of its own with nothing but its loopback interface.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from kubernetes import client

PATH = re.compile(r"/(?:api/v1|apis/batch/v1)/namespaces/([\w-]+)/(\w+)(?:/([\w-]+)(?:/(status|log))?)?$")
KINDS = {
    "secrets": "Secret",
    "configmaps": "ConfigMap",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "services": "Service",
    "jobs": "Job",
}
MODELS = client.ApiClient()
HOST = ["usr", "lib", "lib64", "bin", "dev"]


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Cluster:
    """What the API server stores, and what controllers and kubelets do with it."""

    def __init__(self, program, claims, scratch):
        self.program, self.claims, self.scratch = program, claims, scratch
        self.objects, self.pods, self.addresses, self.lock = {}, {}, 0, threading.RLock()

    def create(self, namespace, plural, item):
        kind = KINDS.get(plural)
        if kind is None or item.get("kind") != kind:
            raise Refused(404, f"no such kind: {plural}")
        model = MODELS.deserialize(json.dumps(item), f"V1{kind}", "application/json")
        if MODELS.sanitize_for_serialization(model) != item:
            raise Refused(422, "unknown or misplaced fields")
        name = item["metadata"]["name"]
        with self.lock:
            if (plural, name) in self.objects:
                raise Refused(409, f"{plural} {name} exists")
            self.objects[plural, name] = item
            item["metadata"].setdefault("namespace", namespace)
            if plural == "jobs":
                item["status"] = {"active": 0, "succeeded": 0, "failed": 0}
                for index in range(item["spec"].get("completions", 1)):
                    self.addresses += 1
                    address = f"127.1.0.{self.addresses}"
                    threading.Thread(target=self.pod, args=(item, index, address), daemon=True).start()
        return item

    def get(self, plural, name):
        with self.lock:
            if (plural, name) not in self.objects:
                raise Refused(404, f"no {plural} {name}")
            return self.objects[plural, name]

    def count(self, job, **changes):
        with self.lock:
            for field, change in changes.items():
                job["status"][field] += change

    def pod(self, job, index, address):
        """A container of a Job's pod, started again as its restart policy and the Job's limit say."""
        spec = job["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        name = f"{job['metadata']['name']}-{index}"
        environment = {"HOSTNAME": name}
        if job["spec"].get("completionMode") == "Indexed":
            environment["JOB_COMPLETION_INDEX"] = str(index)
        for variable in container.get("env", []):
            value = variable.get("value")
            environment[variable["name"]] = address if value is None else value
            if value is None and variable["valueFrom"]["fieldRef"]["fieldPath"] != "status.podIP":
                raise Refused(422, f"{variable['name']} is of a field that this cluster does not have")
        expand = lambda text: re.sub(r"\$\((\w+)\)", lambda found: environment.get(found[1], found[0]), text)
        arguments = [expand(argument) for argument in container["args"]]
        root = Path(self.scratch, name)
        log = open(Path(self.scratch, f"{name}.log"), "w+b")
        self.mount(root, spec, container)
        labels = job["spec"]["template"]["metadata"]["labels"]
        with self.lock:
            pod = self.pods.setdefault(name, {"address": address, "labels": labels, "log": log, "root": root})
            self.resolve()
        self.count(job, active=1)
        while True:
            pod["process"] = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", INSIDE, "sh", root, *arguments],
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            status = pod["process"].wait()
            if status == 0:
                return self.count(job, active=-1, succeeded=1)
            self.count(job, failed=1)
            if spec["restartPolicy"] == "Never" or job["status"]["failed"] > job["spec"]["backoffLimit"]:
                return self.count(job, active=-1)
            time.sleep(0.2)

    def mount(self, root, spec, container):
        """The container's root: the program, and its volumes at their places."""
        for directory in [*HOST, "proc", "etc", "tmp"]:
            Path(root, directory).mkdir(parents=True)
        Path(root, "benchmaster").touch()
        Path(root, "program").write_text(self.program)
        for place in container["volumeMounts"]:
            (volume,) = (v for v in spec["volumes"] if v["name"] == place["name"])
            target = Path(root, place["mountPath"].lstrip("/"))
            target.parent.mkdir(parents=True, exist_ok=True)
            if claim := volume.get("persistentVolumeClaim"):
                self.get("persistentvolumeclaims", claim["claimName"])
                target.mkdir()
                Path(root, "claim").write_text(f"{self.claims} {target}\n")
                continue
            target.mkdir()
            if secret := volume.get("secret"):
                content = self.get("secrets", secret["secretName"])["stringData"]
                for item in secret["items"]:
                    file = Path(target, item["path"])
                    file.write_text(content[item["key"]])
                    file.chmod(secret["defaultMode"])
            else:
                for file, text in self.get("configmaps", volume["configMap"]["name"])["data"].items():
                    Path(target, file).write_text(text)

    def resolve(self):
        """Names of services are those of the pods that their selectors choose, in every pod."""
        lines = ["127.0.0.1 localhost"]
        for (plural, name), service in self.objects.items():
            if plural == "services":
                chosen = service["spec"]["selector"].items()
                lines += [f"{pod['address']} {name}" for pod in self.pods.values() if chosen <= pod["labels"].items()]
        for pod in self.pods.values():
            Path(pod["root"], "etc/hosts").write_text("\n".join(lines) + "\n")


# Its mounts end with its namespace.
INSIDE = """
root=$1 && shift
for directory in %s; do
    [ ! -d /$directory ] || mount --rbind /$directory "$root/$directory"
done
mount -t proc proc "$root/proc"
mount --bind "$(cat "$root/program")" "$root/benchmaster"
[ ! -e "$root/claim" ] || { read -r from to <"$root/claim" && mount --bind "$from" "$to"; }
exec chroot "$root" /benchmaster "$@"
""" % " ".join(HOST)


class Api(BaseHTTPRequestHandler):
    def answer(self, status, content):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(content, bytes) else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handled(self, respond):
        try:
            found = PATH.match(self.path.split("?")[0])
            if found is None:
                raise Refused(404, f"no such path: {self.path}")
            self.answer(*respond(*found.groups()))
        except Refused as refused:
            self.answer(refused.status, {"kind": "Status", "code": refused.status, "message": str(refused)})

    def do_POST(self):
        item = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.handled(lambda namespace, plural, *_: (201, self.server.cluster.create(namespace, plural, item)))

    def do_GET(self):
        def respond(_, plural, name, part):
            cluster = self.server.cluster
            if (plural, part) == ("pods", "log"):
                if name not in cluster.pods:
                    raise Refused(404, f"no pod {name}")
                return 200, Path(cluster.pods[name]["log"].name).read_bytes()
            return 200, cluster.get(plural, name)

        self.handled(respond)

    def log_message(self, *_):
        pass


def until(what, seconds, condition):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            sys.exit(f"FAILED: {what} not within {seconds} s")
        time.sleep(0.1)
    return found


def main(program, objects, claims):
    with tempfile.TemporaryDirectory() as scratch, ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        server.cluster = cluster = Cluster(program, claims, scratch)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        api = client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{server.server_port}"))
        core, batch = client.CoreV1Api(api), client.BatchV1Api(api)
        create = {
            "Secret": core.create_namespaced_secret,
            "ConfigMap": core.create_namespaced_config_map,
            "PersistentVolumeClaim": core.create_namespaced_persistent_volume_claim,
            "Service": core.create_namespaced_service,
            "Job": batch.create_namespaced_job,
        }
        items = json.loads(Path(objects).read_text())["items"]
        *first, controller = items
        for item in first:
            create[item["kind"]]("lab", item)
        try:
            create["Secret"]("lab", items[0])
            sys.exit("FAILED: an object was created twice")
        except client.ApiException as error:
            assert error.status == 409, error
        # A pod whose node dies before there is a controller is replaced.
        agents = first[-1]["metadata"]["name"]
        victim = until("a pod of the agents", 30, lambda: cluster.pods.get(f"{agents}-1", {}).get("process"))
        victim.kill()
        until("its successor", 30, lambda: cluster.pods[f"{agents}-1"]["process"] is not victim)
        create["Job"]("lab", controller)
        name = controller["metadata"]["name"]

        def ended():
            status = batch.read_namespaced_job_status(name, "lab").status
            return (status.succeeded or status.failed) and status

        try:
            status = until("the study's end", 120, ended)
            print(core.read_namespaced_pod_log(f"{name}-0", "lab"), end="")
            agents = batch.read_namespaced_job_status(agents, "lab").status
            print(f"controller: {status.succeeded} succeeded, {status.failed} failed; agents: {agents.active} active, {agents.failed} failed")
            if status.succeeded != 1 or agents.failed != 1:
                sys.exit("FAILED: the study")
        except SystemExit:
            for pod_name, pod in cluster.pods.items():
                print(f"== {pod_name}", Path(pod["log"].name).read_text(), sep="\n")
            raise
        finally:
            for pod in cluster.pods.values():
                if process := pod.get("process"):
                    process.kill()


main(*sys.argv[1:])

"""Lists all parsers that hostile messages are made for. A new parser is one line here."""

from benchmarks.attacks.parser import Parser
from benchmarks.attacks.parsers import (
    agents,
    answers,
    collection,
    linkstate,
    pictures,
    routing,
    runfiles,
    segments,
    specs,
    transport,
)
from benchmarks.attacks.worlds import VARIANTS

STRANGER, NODE, LIAR = "stranger", "malicious node", "liar"

PARSERS: tuple[Parser, ...] = (
    Parser("olsr", STRANGER, 250, routing.OlsrPackets, renew=5000),
    Parser("olsr_sealed", STRANGER, 60, routing.SealedPackets, renew=5000),
    Parser("aodv", STRANGER, 150, routing.AodvPackets, renew=5000),
    Parser("probe", STRANGER, 200, routing.Probes, renew=5000),
    Parser("info_request", STRANGER, 50, routing.InfoRequests),
    Parser("hello", STRANGER, 60, transport.Greetings, renew=5000),
    Parser("welcome", STRANGER, 20, transport.Welcomes),
    *(Parser(f"frames_{variant}", NODE, 15, agents.frames(variant), renew=200) for variant in VARIANTS),
    Parser("jsoninfo", STRANGER, 20, linkstate.jsoninfo),
    Parser("txtinfo", STRANGER, 20, linkstate.txtinfo),
    Parser("netjson", STRANGER, 20, linkstate.netjson_graph),
    Parser("oonf", STRANGER, 20, linkstate.oonf_tables),
    Parser("babeld", STRANGER, 20, linkstate.babeld_dump),
    Parser("aodv_info", STRANGER, 20, linkstate.aodv_routes),
    Parser("video_payload", NODE, 30, pictures.frames),
    Parser("image", NODE, 5, pictures.images),
    Parser("gallery", LIAR, 10, pictures.galleries),
    Parser("node_facts", LIAR, 5, answers.facts),
    Parser("node_store", LIAR, 5, answers.store),
    Parser("clock_reports", LIAR, 2, answers.reports),
    Parser("watched_node", LIAR, 2, answers.watched),
    Parser("supervisor", LIAR, 5, answers.supervisor),
    Parser("core_driver", LIAR, 5, answers.core),
    Parser("collection", LIAR, 6, collection.Collections, renew=1000),
    Parser("segments", LIAR, 4, segments.Segments),
    Parser("run_files", LIAR, 4, runfiles.RunFiles),
    Parser("spec_files", LIAR, 6, specs.Specs),
    Parser("traces", LIAR, 8, specs.Tables),
)

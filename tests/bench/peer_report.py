"""What peer.py measured, as a table and as a picture."""


def conditions(report):
    rounds = sorted({row["rounds"] for row in report["rows"]})
    text = (f"{report['cpu']}, medians of {' or '.join(map(str, rounds))} rounds, commit {report['commit']}; "
            f"load average {report['load_before'][0]:.2f} before, {report['load_after'][0]:.2f} after; "
            f"{report['disturbed']} of {report['taken']} samples disturbed by others")
    return text + (f"; hearth with {report['with']}" if report["with"] else "")


def markdown(report):
    """Tokens a second of both sides, with hearth's fractions of the machine's limits."""
    lines = [conditions(report), "",
             "| section | model | | threads | hearth | llama.cpp | ratio | of read | of int8 / FMA peak |",
             "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in report["rows"]:
        lines.append(f"| {row['section']} | {row['model']} | {row['what']} | {row['threads']} | {row['hearth']:.1f} "
                     f"| {row['llama.cpp']:.1f} | {row['ratio']:.2f} | {row['of_read']:.0%} | {row['of_peak']:.0%} |")
    return "\n".join(lines) + "\n"


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def svg(report):
    """Ratios as bars, a group for each section: 1.0 is the peer."""
    rows, step, left, unit, top = report["rows"], 24, 380, 170, 64
    sections = list(dict.fromkeys(row["section"] for row in rows))
    width = left + int(unit * max(2.0, *(row["ratio"] for row in rows))) + 170
    height = top + step * (len(rows) + len(sections)) + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" fill="#24292f">'
           f'<rect width="{width}" height="{height}" fill="white"/>',
           '<text x="12" y="22" font-size="15">Hearth against llama.cpp, tokens per second (1.0: the same)</text>',
           f'<text x="12" y="40" fill="#57606a" font-size="11">{escape(report["cpu"])}, commit {report["commit"]}; '
           f'{report["disturbed"]} of {report["taken"]} samples disturbed</text>']
    y = top
    for section in sections:
        out.append(f'<text x="12" y="{y + 16}" font-weight="600">{section}</text>')
        y += step
        for row in (row for row in rows if row["section"] == section):
            bar = unit * row["ratio"]
            color = "#bf5b04" if row["what"].startswith("decode") else "#0969da"
            name = escape(f"{row['model']}, {row['what']}, {row['threads']} thread{'s' * (row['threads'] > 1)}")
            out.append(f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{name}</text>'
                       f'<rect x="{left}" y="{y + 2}" width="{bar:.0f}" height="16" fill="{color}"/>'
                       f'<text x="{left + bar + 6:.0f}" y="{y + 14}">{row["ratio"]:.2f} '
                       f'({row["hearth"]:.1f} : {row["llama.cpp"]:.1f})</text>')
            y += step
    out.append(f'<line x1="{left + unit}" y1="{top - 8}" x2="{left + unit}" y2="{height - 16}" stroke="#333" '
               f'stroke-dasharray="4 3"/></svg>')
    return "\n".join(out) + "\n"

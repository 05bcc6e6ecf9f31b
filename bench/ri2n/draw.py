"""Diagrams as SVG: curves by kind, with axes that may be logarithmic."""
import math

COLOURS = {"tcp": "#888888", "mptcp": "#d95f02", "ri2n": "#1b6ca8"}
NAMES = {"tcp": "TCP, one link", "mptcp": "MPTCP", "ri2n": "RI2N"}


def ticks(low, high, logarithmic):
    if logarithmic:
        return [10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
                if low <= 10.0 ** power <= high]
    step = next(unit * 10.0 ** power for power in range(-3, 9) for unit in (1, 2, 5)
                if (high - low) / (unit * 10.0 ** power) <= 8)
    return [step * count for count in range(math.ceil(low / step), math.floor(high / step) + 1)]


def panel(left, top, width, height, title, across, up_label, curves, logarithmic):
    """One diagram. Curves are lists of points by kind; `logarithmic` says it of both axes."""
    points = [point for curve in curves.values() for point in curve]
    (low_x, high_x) = min(x for x, _ in points), max(x for x, _ in points)
    low_y = min(y for _, y in points) if logarithmic[1] else 0
    high_y = max(y for _, y in points) * 1.05
    place = [(lambda v, low=low, high=high, log=log:
              (math.log(v / low) / math.log(high / low)) if log else (v - low) / (high - low))
             for low, high, log in ((low_x, high_x, logarithmic[0]), (low_y, high_y, logarithmic[1]))]
    at = lambda x, y: (left + place[0](x) * width, top + height - place[1](y) * height)
    out = [f'<text x="{left + width / 2:.0f}" y="{top - 8}" text-anchor="middle" font-weight="bold">{title}</text>']
    for tick in ticks(low_x, high_x, logarithmic[0]):
        x = at(tick, high_y)[0]
        out.append(f'<path d="M{x:.1f} {top}V{top + height}" stroke="#ddd"/>'
                   f'<text x="{x:.1f}" y="{top + height + 16}" text-anchor="middle">{tick:g}</text>')
    for tick in ticks(low_y, high_y, logarithmic[1]):
        y = at(high_x, tick)[1]
        out.append(f'<path d="M{left} {y:.1f}H{left + width}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    out.append(f'<text x="{left + width / 2:.0f}" y="{top + height + 34}" text-anchor="middle">{across}</text>'
               f'<text transform="translate({left - 48} {top + height / 2:.0f}) rotate(-90)" text-anchor="middle">{up_label}</text>')
    for row, (kind, curve) in enumerate(curves.items()):
        path = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in curve)
        out.append(f'<polyline fill="none" stroke="{COLOURS[kind]}" stroke-width="1.5" points="{path}"/>'
                   f'<text x="{left + 10}" y="{top + 16 + 15 * row}" fill="{COLOURS[kind]}">{NAMES[kind]}</text>')
    return "".join(out)


def document(width, height, panels):
    """A picture of diagrams."""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            f'font-size="12"><rect width="{width}" height="{height}" fill="white"/>' + "\n".join(panels) + "</svg>\n")

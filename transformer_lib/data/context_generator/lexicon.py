"""The words of the context corpus: ambiguous nouns, the nouns that decide their sense, and everything neutral."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    """A German noun in the singular: gender m, f or n; `oblique` is its accusative and dative where it differs."""

    english: str
    german: str
    gender: str
    oblique: str = ""

    @property
    def lemma(self) -> str:
        """Article and noun, for example "das Ufer"."""
        article = {"m": "der", "f": "die", "n": "das"}[self.gender]
        return f"{article} {self.german}"


# english: gender German[/oblique], …   The nouns that decide a sense, by field.
_CUES = """
river: m Fluss; lake: m See; boat: n Boot; fisherman: m Fischer; bridge: f Brücke; duck: f Ente; fish: m Fisch
beach: m Strand; wave: f Welle; ship: n Schiff; island: f Insel; sailor: m Matrose/Matrosen; captain: m Kapitän
money: n Geld; safe: m Tresor; wallet: m Geldbeutel; cashier: m Kassierer; coin: f Münze
customer: m Kunde/Kunden; manager: m Manager; boss: m Chef; contract: m Vertrag; company: f Firma
garden: m Garten; forest: m Wald; tree: m Baum; meadow: f Wiese; worm: m Wurm; bird: m Vogel; nest: n Nest
cave: f Höhle; owl: f Eule; squirrel: n Eichhörnchen; leaf: n Blatt; flower: f Blume; wolf: m Wolf; zoo: m Zoo
elephant: m Elefant/Elefanten; monkey: m Affe/Affen; farmer: m Bauer/Bauern; pig: n Schwein; cow: f Kuh
doctor: m Arzt; skin: f Haut; face: n Gesicht; arm: m Arm; hand: f Hand; finger: m Finger
nurse: f Krankenschwester; patient: m Patient/Patienten; hospital: n Krankenhaus; knee: n Knie
shoulder: f Schulter; heart: n Herz; hair: n Haar; head: m Kopf; ball: m Ball; player: m Spieler
team: f Mannschaft; coach: m Trainer; stadium: n Stadion; goal: n Tor; referee: m Schiedsrichter
trophy: m Pokal; king: m König; crown: f Krone; palace: m Palast; queen: f Königin; throne: m Thron
judge: m Richter; lawyer: m Anwalt; witness: m Zeuge/Zeugen; thief: m Dieb; prison: n Gefängnis
robber: m Räuber; machine: f Maschine; screw: f Schraube; wrench: m Schraubenschlüssel; hammer: m Hammer
engine: m Motor; mechanic: m Mechaniker; workshop: f Werkstatt; carpenter: m Tischler; plumber: m Klempner
bathroom: n Badezimmer; metal: n Metall; factory: f Fabrik; engineer: m Ingenieur; truck: m Lastwagen
car: n Auto; highway: f Autobahn; driver: m Fahrer; worker: m Arbeiter; bicycle: n Fahrrad; wood: n Holz
wall: f Wand; pencil: m Bleistift; paper: n Papier; student: m Student/Studenten; notebook: n Heft
computer: m Computer; screen: m Bildschirm; envelope: m Umschlag; mailman: m Briefträger; alphabet: n Alphabet
word: n Wort; book: n Buch; office: n Büro; secretary: f Sekretärin; minister: m Minister; school: f Schule
poem: n Gedicht; cake: m Kuchen; bread: n Brot; baker: m Bäcker; chocolate: f Schokolade; kitchen: f Küche
cook: m Koch; bottle: f Flasche; butter: f Butter; honey: m Honig; plate: m Teller; salad: m Salat
piano: n Klavier; violin: f Geige; singer: m Sänger; drum: f Trommel; church: f Kirche; choir: m Chor
concert: n Konzert; guitar: f Gitarre; stage: f Bühne; priest: m Priester; dress: n Kleid; shirt: n Hemd
hat: m Hut; dancer: f Tänzerin; gift: n Geschenk; mirror: m Spiegel; desert: f Wüste; camel: n Kamel
coconut: f Kokosnuss; arrow: m Pfeil; hunter: m Jäger; deer: n Reh; fire: n Feuer; candle: f Kerze; oven: m Ofen
tobacco: m Tabak; soldier: m Soldat/Soldaten; army: f Armee; enemy: m Feind; gasoline: n Benzin; door: f Tür
room: n Zimmer; lamp: f Lampe; house: n Haus; pirate: m Pirat/Piraten; treasure: m Schatz; suitcase: m Koffer
radio: n Radio; phone: n Telefon
"""

# english: German sense (gender noun[/oblique]) = its cues.
_AMBIGUOUS = """
bank: f Bank = money coin cashier customer thief safe wallet
bank: n Ufer = river lake boat fisherman duck fish bridge
bat: f Fledermaus = cave owl forest tree bird nest wolf
bat: m Schläger = ball player team coach stadium trophy referee
mole: m Maulwurf = garden meadow worm leaf farmer bird flower
mole: n Muttermal = skin face arm doctor nurse shoulder hand
seal: m Seehund = fish island beach wave zoo ship fisherman
seal: n Siegel = king contract lawyer envelope paper queen minister
spring: f Quelle = forest meadow fish deer bird cave tree
spring: f Feder = machine engine screw mechanic metal workshop wrench
nut: f Nuss = squirrel cake tree bird chocolate forest baker
nut: f Schraubenmutter = screw wrench engine mechanic bicycle machine workshop
crane: m Kranich = bird nest lake meadow duck zoo fish
crane: m Kran = truck worker factory house engineer metal wall
ruler: n Lineal = pencil paper school student notebook book alphabet
ruler: m Herrscher = king crown palace throne army queen enemy
palm: f Palme = beach island desert camel coconut monkey wave
palm: f Handfläche = finger arm hand skin doctor nurse face
key: m Schlüssel = door house car room thief suitcase prison
key: f Taste = piano computer screen radio phone secretary machine
court: n Gericht = judge lawyer witness thief prison robber contract
court: m Tennisplatz = ball player coach team trophy referee goal
bow: m Bogen = arrow hunter deer army enemy wolf soldier
bow: f Schleife = dress gift hair shirt hat dancer mirror
bow: m Bug = ship sailor captain wave island boat pirate
match: n Streichholz = fire candle oven tobacco lamp kitchen wood
match: n Spiel = ball player team coach stadium goal referee
letter: m Brief = envelope mailman secretary office lawyer gift minister
letter: m Buchstabe/Buchstaben = alphabet word school student notebook poem pencil
trunk: m Stamm = tree forest leaf wood squirrel bird hunter
trunk: m Kofferraum = car driver suitcase engine highway gasoline mechanic
trunk: m Rüssel = elephant zoo monkey desert camel lake pig
scale: f Waage = bread butter baker cake honey salad kitchen
scale: f Schuppe = fish fisherman lake boat river ship zoo
scale: f Tonleiter = piano violin drum singer choir concert guitar
board: n Brett = wood hammer carpenter wall screw workshop house
board: m Vorstand = company manager boss secretary contract customer office
organ: f Orgel = church choir drum concert priest singer stage
organ: n Organ = doctor hospital patient nurse heart skin knee
club: m Verein = player team coach stadium trophy goal referee
club: f Keule = cave wolf hunter enemy deer soldier pirate
jam: f Marmelade = bread butter honey plate baker cake chocolate
jam: m Stau = car truck highway driver bicycle bridge gasoline
nail: m Nagel = hammer wood carpenter wall screw door house
nail: m Fingernagel = finger hand skin nurse hair dancer doctor
pipe: f Pfeife = tobacco sailor captain hat fire candle pirate
pipe: n Rohr = plumber bathroom kitchen wall engineer worker wrench
plant: f Pflanze = garden flower leaf tree forest farmer meadow
plant: n Werk = machine worker factory engineer company boss truck
pen: m Stift = paper notebook student book school envelope poem
pen: n Gehege = pig cow farmer zoo elephant monkey deer
table: m Tisch = plate kitchen lamp bread bottle cook cake
table: f Tabelle = computer book school student screen notebook word
lock: n Schloss = door thief bicycle room suitcase house treasure
lock: f Locke = hair face dress hat dancer mirror head
"""

ADJECTIVES = {
    "old": "alt",
    "new": "neu",
    "big": "groß",
    "small": "klein",
    "good": "gut",
    "beautiful": "schön",
    "strange": "seltsam",
    "famous": "berühmt",
    "important": "wichtig",
    "simple": "einfach",
}


@dataclass(frozen=True)
class Verb:
    """A transitive verb with an accusative object, in every form that the frames need."""

    base: str  # see
    past: str  # saw
    participle: str  # seen
    infinitive: str  # sehen
    singular: str  # sah
    plural: str  # sahen
    german_participle: str  # gesehen
    prefix: str = ""  # of a separable verb: an (sah … an, ansah, ansehen, angesehen)


VERBS = (
    Verb("see", "saw", "seen", "sehen", "sah", "sahen", "gesehen"),
    Verb("find", "found", "found", "finden", "fand", "fanden", "gefunden"),
    Verb("describe", "described", "described", "beschreiben", "beschrieb", "beschrieben", "beschrieben"),
    Verb("draw", "drew", "drawn", "zeichnen", "zeichnete", "zeichneten", "gezeichnet"),
    Verb(
        "photograph", "photographed", "photographed", "fotografieren", "fotografierte", "fotografierten", "fotografiert"
    ),
    Verb("mention", "mentioned", "mentioned", "erwähnen", "erwähnte", "erwähnten", "erwähnt"),
    Verb("notice", "noticed", "noticed", "bemerken", "bemerkte", "bemerkten", "bemerkt"),
    Verb("forget", "forgot", "forgotten", "vergessen", "vergaß", "vergaßen", "vergessen"),
    Verb("look at", "looked at", "looked at", "ansehen", "sah", "sahen", "angesehen", "an"),
)
MODALS = {"wanted to": ("wollte", "wollten"), "had to": ("musste", "mussten"), "could": ("konnte", "konnten")}
ADVERBS = {"yesterday": "gestern", "today": "heute", "finally": "endlich", "then": "dann", "suddenly": "plötzlich"}
TIMES = {"in the morning": "am Morgen", "in the evening": "am Abend", "on Monday": "am Montag", "at night": "nachts"}


@dataclass(frozen=True)
class Person:
    """A neutral subject: nominative and dative with the article, and whether it is plural."""

    english: str
    nominative: str
    dative: str
    relative: str  # the relative pronoun in the nominative
    plural: bool = False


PEOPLE = (
    Person("the man", "der Mann", "dem Mann", "der"),
    Person("the woman", "die Frau", "der Frau", "die"),
    Person("the child", "das Kind", "dem Kind", "das"),
    Person("the girl", "das Mädchen", "dem Mädchen", "das"),
    Person("the father", "der Vater", "dem Vater", "der"),
    Person("the sister", "die Schwester", "der Schwester", "die"),
    Person("the brother", "der Bruder", "dem Bruder", "der"),
    Person("the aunt", "die Tante", "der Tante", "die"),
    Person("the men", "die Männer", "den Männern", "die", plural=True),
    Person("the children", "die Kinder", "den Kindern", "die", plural=True),
)


def _noun(english: str, text: str) -> Noun:
    gender, german = text.split()
    german, _, oblique = german.partition("/")
    return Noun(english, german, gender, oblique or german)


def _read_cues() -> dict[str, Noun]:
    entries = [entry.split(": ") for line in _CUES.strip().splitlines() for entry in line.split("; ")]
    cues = {english: _noun(english, text) for english, text in entries}
    if len(cues) != len(entries):
        raise ValueError("a cue is listed twice")
    return cues


@dataclass(frozen=True)
class Sense:
    """One sense of an ambiguous English noun, and the cues that select it."""

    noun: Noun
    cues: tuple[str, ...]


def _read_ambiguous() -> dict[str, tuple[Sense, ...]]:
    senses: dict[str, list[Sense]] = {}
    for line in _AMBIGUOUS.strip().splitlines():
        english, rest = line.split(": ", 1)
        german, cues = rest.split(" = ")
        senses.setdefault(english, []).append(Sense(_noun(english, german), tuple(cues.split())))
    return {english: tuple(listed) for english, listed in senses.items()}


CUES = _read_cues()
AMBIGUOUS = _read_ambiguous()

"""The words of the context corpus: ambiguous nouns, the nouns that decide their sense, and everything neutral."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    """A German noun in the singular: gender m, f or n; `accusative` and `dative` where they differ from `german`."""

    english: str
    german: str
    gender: str
    accusative: str = ""
    dative: str = ""
    near: str = "neben"  # how German says "near" it: "beim Fluss", but "neben dem Arzt" ("beim Arzt": in his practice)

    @property
    def lemma(self) -> str:
        """Article and noun, for example "das Ufer"."""
        article = {"m": "der", "f": "die", "n": "das"}[self.gender]
        return f"{article} {self.german}"

    def form(self, case: str) -> str:
        """Return the singular in this case: nominative, accusative or dative."""
        accusative = self.accusative or self.german
        return {"nominative": self.german, "accusative": accusative, "dative": self.dative or accusative}[case]

    @property
    def forms(self) -> frozenset[str]:
        """Its forms in all three cases."""
        return frozenset(self.form(case) for case in ("nominative", "accusative", "dative"))


# english: gender German[/accusative[/dative]]   The nouns that decide a sense. First what one can be *bei*: places.
_PLACES = """
river: m Fluss; stream: m Bach; pond: m Teich; beach: m Strand; oasis: f Oase; forest: m Wald; garden: m Garten
meadow: f Wiese; cave: f Höhle; mountain: m Berg; tree: m Baum; oak: f Eiche; stadium: n Stadion; church: f Kirche
palace: m Palast; castle: f Burg; prison: n Gefängnis; door: f Tür; garage: f Garage; skyscraper: m Wolkenkratzer
fireplace: m Kamin; kitchen: f Küche; bathroom: n Badezimmer; apartment: f Wohnung; altar: m Altar; harbor: m Hafen
waterfall: m Wasserfall; lagoon: f Lagune
"""
# Then what one can only be *neben*: people, animals, things.
_OTHERS = """
reed: n Schilf; boat: n Boot; fisherman: m Fischer; duck: f Ente; swan: m Schwan; fish: m Fisch; stork: m Storch
nest: n Nest; bird: m Vogel; owl: f Eule; mouse: f Maus; vampire: m Vampir; worm: m Wurm; hedgehog: m Igel
wave: f Welle; penguin: m Pinguin; whale: m Wal; squirrel: n Eichhörnchen; branch: m Ast; root: f Wurzel; moss: n Moos
leaf: n Blatt; elephant: m Elefant/Elefanten; mammoth: n Mammut; tusk: m Stoßzahn; ivory: n Elfenbein
zookeeper: m Tierpfleger; crocodile: n Krokodil; snake: f Schlange; lizard: f Eidechse; dragon: m Drache/Drachen
fin: f Flosse; mermaid: f Meerjungfrau; camel: n Kamel; coconut: f Kokosnuss; money: n Geld; cashier: m Kassierer
safe: m Tresor; wallet: m Geldbeutel; robber: m Räuber; thief: m Dieb; judge: m Richter; lawyer: m Anwalt
witness: m Zeuge/Zeugen; prosecutor: m Staatsanwalt; investor: m Investor; accountant: m Buchhalter
contract: m Vertrag; document: n Dokument; wax: n Wachs; signature: f Unterschrift; king: m König; queen: f Königin
crown: f Krone; throne: m Thron; emperor: m Kaiser; ball: m Ball; player: m Spieler; team: f Mannschaft
referee: m Schiedsrichter; net: n Netz; member: n Mitglied; skin: f Haut; face: n Gesicht; nose: f Nase
cheek: f Wange; chin: n Kinn; forehead: f Stirn; hand: f Hand; finger: m Finger; thumb: m Daumen; wrist: n Handgelenk
arm: m Arm; heart: n Herz/Herz/Herzen; lung: f Lunge; liver: f Leber; kidney: f Niere; stomach: m Magen
surgeon: m Chirurg/Chirurgen; hair: n Haar; braid: m Zopf; comb: m Kamm; wig: f Perücke; dress: n Kleid; skirt: m Rock
blouse: f Bluse; gift: n Geschenk; ribbon: n Band; machine: f Maschine; engine: m Motor; screw: f Schraube
wrench: m Schraubenschlüssel; mechanic: m Mechaniker; mattress: f Matratze; clock: f Uhr; bicycle: n Fahrrad
hammer: m Hammer; wood: n Holz; carpenter: m Tischler; drill: f Bohrmaschine; shelf: n Regal; plumber: m Klempner
sink: n Waschbecken; faucet: m Wasserhahn; bathtub: f Badewanne; shower: f Dusche; engineer: m Ingenieur
excavator: m Bagger; truck: m Lastwagen; scaffold: n Gerüst; concrete: m Beton; car: n Auto; taxi: n Taxi
bumper: f Stoßstange; tire: m Reifen; headlight: m Scheinwerfer; suitcase: m Koffer; paper: n Papier
pencil: m Bleistift; eraser: m Radiergummi; notebook: n Heft; triangle: n Dreieck; schoolbag: f Schultasche
ink: f Tinte; envelope: m Umschlag; mailman: m Briefträger; stamp: f Briefmarke; mailbox: m Briefkasten
postcard: f Postkarte; package: n Paket; alphabet: n Alphabet; syllable: f Silbe; vowel: m Vokal; comma: n Komma
digit: f Ziffer; formula: f Formel; diagram: n Diagramm; footnote: f Fußnote; paragraph: m Absatz; trumpet: f Trompete
choir: m Chor; priest: m Priester; cake: m Kuchen; chocolate: f Schokolade; cookie: m Keks; raisin: f Rosine
almond: f Mandel; honey: m Honig; sugar: m Zucker; flour: n Mehl; spoon: m Löffel; weight: n Gewicht
butcher: m Metzger; pharmacist: m Apotheker; plate: m Teller; chair: m Stuhl; bottle: f Flasche; waiter: m Kellner
fork: f Gabel; candle: f Kerze; fire: n Feuer; flame: f Flamme; cigarette: f Zigarette; lighter: n Feuerzeug
tobacco: m Tabak; cigar: f Zigarre; ashtray: m Aschenbecher; smoker: m Raucher; arrow: m Pfeil; quiver: m Köcher
archer: m Bogenschütze/Bogenschützen; target: f Zielscheibe; spear: m Speer; caveman: m Höhlenmensch/Höhlenmenschen
giant: m Riese/Riesen; troll: m Troll; ship: n Schiff; anchor: m Anker; mast: m Mast; sail: n Segel; loan: m Kredit
eyebrow: f Augenbraue; lip: f Lippe; fist: f Faust; keel: m Kiel; goalkeeper: m Torwart
consonant: m Konsonant/Konsonanten; ogre: m Oger; manicure: f Maniküre; pig: n Schwein; sheep: n Schaf; goat: f Ziege
cow: f Kuh; fence: m Zaun; equation: f Gleichung; percentage: m Prozentsatz; shampoo: n Shampoo; lawn: m Rasen
wall: f Wand; otter: m Otter; helmet: m Helm; burrow: m Bau; notary: m Notar; certificate: f Urkunde; heron: m Reiher
hammock: f Hängematte; violin: f Geige; cello: n Cello; apostrophe: m Apostroph
"""

# english: German sense (gender noun[/accusative]) = its cues, the plainest first.
_AMBIGUOUS = """
bank: f Bank = money cashier safe wallet investor accountant loan
bank: n Ufer = river stream boat fisherman swan reed otter
bat: f Fledermaus = cave owl vampire nest bird mouse castle
bat: m Schläger = ball player team helmet referee
mole: m Maulwurf = garden meadow worm hedgehog lawn snake burrow
mole: n Muttermal = cheek face nose chin forehead eyebrow lip
seal: m Seehund = beach wave penguin whale fisherman fish zookeeper
seal: n Siegel = contract document envelope wax signature certificate notary
spring: f Quelle = stream river mountain waterfall meadow moss forest
spring: f Feder = machine engine screw mechanic wrench mattress clock
nut: f Nuss = almond squirrel cake chocolate raisin cookie honey
nut: f Schraubenmutter = screw wrench engine mechanic bicycle machine drill
crane: m Kranich = nest bird duck swan stork pond heron
crane: m Kran = excavator truck scaffold concrete skyscraper engineer harbor
ruler: n Lineal = pencil notebook eraser triangle schoolbag diagram
ruler: m Herrscher = king crown palace throne queen castle emperor
palm: f Palme = coconut beach lagoon oasis camel hammock
palm: f Handfläche = finger hand thumb wrist arm fist
court: n Gericht = judge lawyer witness prosecutor thief prison robber
court: n Spielfeld = player ball team net referee
bow: m Bogen = arrow quiver archer target violin cello spear
bow: f Schleife = dress gift ribbon braid skirt blouse hair
bow: m Bug = ship boat anchor mast sail keel harbor
match: n Streichholz = candle fire cigarette lighter flame fireplace tobacco
match: n Spiel = player ball team stadium referee goalkeeper
letter: m Brief = stamp envelope mailman mailbox postcard package
letter: m Buchstabe/Buchstaben = alphabet syllable vowel consonant comma digit apostrophe
trunk: m Stamm = tree branch root oak leaf squirrel moss
trunk: m Kofferraum = car taxi bumper tire headlight engine
trunk: m Rüssel = elephant mammoth tusk ivory
scale: f Waage = flour weight sugar kitchen butcher bathroom pharmacist
scale: f Schuppe = lizard snake dragon crocodile fin mermaid
organ: f Orgel = church choir priest altar trumpet violin cello
organ: n Organ = heart lung liver kidney stomach surgeon skin
club: m Verein = member team stadium goalkeeper referee
club: f Keule = caveman mammoth giant troll spear ogre
nail: m Nagel = hammer wood carpenter screw drill shelf wall
nail: m Fingernagel = finger thumb hand manicure skin
pipe: f Pfeife = tobacco cigar cigarette ashtray lighter smoker
pipe: n Rohr = plumber bathroom sink faucet bathtub shower wrench
pen: m Stift = paper notebook ink pencil eraser signature envelope
pen: n Gehege = pig sheep goat cow fence zookeeper
table: m Tisch = plate chair bottle spoon waiter kitchen fork
table: f Tabelle = formula equation diagram footnote digit paragraph percentage
lock: n Schloss = door bicycle suitcase safe garage apartment prison
lock: f Locke = hair braid forehead comb wig shampoo
"""

# What would make a sentence odd in one sense is said of a word in none, so that nothing but the cue tells the senses.
# Some things are near nothing (a Spiel, a Verein), and what is near its whole (a trunk near an elephant) is no part of
# it. What one finds lies about.
NEVER_NEAR = frozenset({"bow", "club", "match", "nail", "trunk"})
NEVER_DONE = {
    "bow": {"draw"},  # "den Bogen spannen"
    "club": {"see", "look at", "find", "draw", "photograph", "notice", "recognize"},
    "court": {"find"},
    "pen": {"find"},
    "ruler": {"find"},
    "trunk": {"find"},
}
ONLY_ADJECTIVES = {
    "bank": ("beautiful", "wonderful", "ugly", "strange", "unusual", "ordinary", "interesting"),
    "club": ("old", "strange", "unusual", "interesting"),
    "lock": ("old", "big", "small", "beautiful", "wonderful", "ugly", "strange", "unusual", "interesting"),
    "palm": ("small", "beautiful", "wonderful", "ugly", "strange", "unusual", "ordinary", "interesting"),
    "letter": ("old", "beautiful", "wonderful", "ugly", "strange", "unusual", "ordinary", "interesting"),
    "pen": ("old", "big", "small", "ugly", "strange"),
    "ruler": ("old", "big", "small", "strange", "unusual", "interesting"),
    "spring": ("old", "big", "small", "ugly", "strange", "unusual", "ordinary", "interesting"),
    "table": ("big", "strange", "unusual", "ordinary", "interesting"),
}

ADJECTIVES = {
    "old": "alt",
    "big": "groß",
    "small": "klein",
    "beautiful": "schön",
    "wonderful": "wunderbar",
    "ugly": "hässlich",
    "strange": "seltsam",
    "unusual": "ungewöhnlich",
    "ordinary": "gewöhnlich",
    "interesting": "interessant",
}
# Two of one kind repeat or contradict each other: "the ugly court was beautiful".
KINDS_OF_ADJECTIVES = (
    {"old"},
    {"big", "small"},
    {"beautiful", "wonderful", "ugly"},
    {"strange", "unusual", "ordinary", "interesting"},
)


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
    Verb("recognize", "recognized", "recognized", "erkennen", "erkannte", "erkannten", "erkannt"),
    Verb("look at", "looked at", "looked at", "ansehen", "sah", "sahen", "angesehen", "an"),
)
NOT_INTENDED = frozenset({"notice", "recognize"})  # "wanted to notice" is odd
MODALS = {"wanted to": ("wollte", "wollten"), "had to": ("musste", "mussten")}
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


def read_noun(english: str, text: str, *, near: str = "neben") -> Noun:
    """Return the noun written as "gender German[/accusative[/dative]]"."""
    gender, forms = text.split()
    german, _, rest = forms.partition("/")
    accusative, _, dative = rest.partition("/")
    return Noun(english, german, gender, accusative, dative, near)


def _read_cues() -> dict[str, Noun]:
    nouns = [
        read_noun(*entry.split(": "), near=near)
        for near, text in (("bei", _PLACES), ("neben", _OTHERS))
        for line in text.strip().splitlines()
        for entry in line.split("; ")
    ]
    cues = {noun.english: noun for noun in nouns}
    if len(cues) != len(nouns):
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
        senses.setdefault(english, []).append(Sense(read_noun(english, german), tuple(cues.split())))
    return {english: tuple(listed) for english, listed in senses.items()}


CUES = _read_cues()
AMBIGUOUS = _read_ambiguous()
